"""`priced`: a link learns what its time is worth, and deletes what earns far less.

The price of time
-----------------
Max-benefit-first sends whatever waits as soon as the link is idle. A message takes the link for
seconds, and a better one that comes a moment later has to wait, or is late. So a link keeps an
account of what it earns: the expected benefits (Eq. 3) of the messages that leave, fading with
time. What it earns per second is the price of its time. A message takes time of every link to its
destination; the prices of the other links are not known here, and taken to be the same. A message
whose expected benefit is a small share of the price of all this time is deleted.

What is spared
--------------
An idle link earns little, so its price falls, and where there is room for all messages none is
deleted. What must not be lost (durable, or welcome even if it is late) is never deleted for its
price; it waits for its turn. The order is that of `ebpc`, and all that a link learns it learns by
itself.

To wait for a better message instead earned the same when measured, and would need a timer.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, inf

from tidings.core.parcel import Parcel
from tidings.scheduling.base import Prospects
from tidings.scheduling.benefit.queue import Benefit
from tidings.scheduling.benefit.worth import benefit
from tidings.scheduling.chances import curves_of, must_arrive
from tidings.scheduling.options import BenefitOptions

SHARE = 0.2  # of the price of the time it takes: what a message must be expected to earn
MEMORY = 15.0  # mean sending times, after which what was earned counts for 1/e


class Priced(Benefit):
    """What is worth most first, and what is worth too little not at all."""

    def __init__(self, prospects: Prospects, options: BenefitOptions) -> None:
        super().__init__(prospects, options, options.weight)
        self._earned, self._earned_at = 0.0, -inf

    def pop(self, now: float) -> Parcel | None:
        parcel = super().pop(now)
        if parcel is not None:
            self._earned = self._lately(now) + self._benefit(parcel, now)
            self._earned_at = now
        return parcel

    def doomed(self, now: float) -> Iterator[Parcel]:
        yield from super().doomed(now)
        if self._options.delete == "none":
            return
        while (best := self._choose(now)) is not None:
            if best.worth.benefit(now) >= self.least(best.parcel, now):
                self._place(best, now)
                return
            yield self._entries.pop(best.number).parcel

    def least(self, parcel: Parcel, now: float) -> float:
        """What a parcel must be expected to earn, or it is not worth its time: a share of what the
        link earned lately in as much time, for each link to go."""
        if must_arrive(parcel):
            return 0.0
        sending_times = parcel.size_bytes / self._size_bytes * self._links_to_go(parcel)
        return SHARE * sending_times * self._lately(now) / MEMORY

    def _links_to_go(self, parcel: Parcel) -> int:
        """To the farthest destination; 1 if nothing is known of the ways."""
        ways = [self._prospects.outlook(parcel, owed.broker) for owed in parcel.destinations]
        return max([way.brokers for way in ways if way], default=1)

    def _lately(self, now: float) -> float:
        """What was earned, faded; on a link that takes no time for messages nothing is scarce."""
        fades_s = MEMORY * self._size_bytes * self._prospects.s_per_byte
        if fades_s == 0.0 or self._earned == 0.0:
            return 0.0
        return self._earned * exp(-max(0.0, now - self._earned_at) / fades_s)

    def _benefit(self, parcel: Parcel, now: float) -> float:
        return benefit(curves_of(parcel, self._prospects), now)
