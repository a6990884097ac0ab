"""`urgency`: the message whose links have the least time to spare goes first.

Harmony, section 2.2: what a deadline leaves beyond the delay of the path, divided by the number of
links, is the budget of each link; the smaller it is, the more urgent the topic. A message that was
planned at its source carries its budget. For others the same is computed when they come into the
queue: the time that is left, less what the rest of the way needs, per link. Ties, and all that has
no deadline, go by arrival. What has no chance is deleted when its turn has come, if the setting
says so (`delete = "all"`).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

from tidings.core.parcel import Parcel
from tidings.scheduling.base import Prospects
from tidings.scheduling.options import BenefitOptions
from tidings.scheduling.simple import Simple


class Urgency(Simple):
    """A heap by budget; a budget does not change while a parcel waits."""

    def __init__(self, prospects: Prospects, options: BenefitOptions) -> None:
        super().__init__(prospects, options)
        self._heap: list[tuple[float, int, Parcel]] = []
        self._arrivals = 0

    def push(self, parcel: Parcel, now: float) -> None:
        self._arrivals += 1
        heappush(self._heap, (self._spare_s(parcel, now), self._arrivals, parcel))

    def pop(self, now: float) -> Parcel | None:
        return heappop(self._heap)[2] if self._heap else None

    def doomed(self, now: float) -> Iterator[Parcel]:
        if self.options.delete == "all":
            while self._heap and self.is_doomed(self._heap[0][2], now):
                yield heappop(self._heap)[2]

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Parcel]:
        return (parcel for _, _, parcel in self._heap)

    def _spare_s(self, parcel: Parcel, now: float) -> float:
        """The least of all destinations."""
        given = {budget.destination: budget.share_s for budget in parcel.budgets}
        spare_s = inf
        for destination in parcel.destinations:
            share_s = given.get(destination.broker)
            if share_s is None:
                share_s = self._computed_s(parcel, destination.broker, destination.deadline_s, now)
            spare_s = min(spare_s, share_s)
        return spare_s

    def _computed_s(self, parcel: Parcel, broker: str, deadline_s: float, now: float) -> float:
        outlook = self.prospects.outlook(parcel, broker) if deadline_s < inf else None
        if outlook is None:
            return parcel.born_at + deadline_s - now
        left_s = parcel.born_at + deadline_s - now - outlook.expected_s(parcel.size_bytes)
        return left_s / outlook.brokers
