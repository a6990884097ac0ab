"""Which parcels wait when no path is left, where, and for how long?

Durable messages, and with `exhausted = "retry"` all that have no way left just now, are routed
afresh after a while, the older the more rarely, until they are late for everybody. A link that
comes up, here or anywhere, makes all of them try soon.

What is not durable is given up earlier: it may have arrived although no answer came, and a receiver
knows a repeat for as long as it remembers and no longer.

Memory ends. What is not durable finds no room when enough waits. What is durable always does; so if
much of it waits, publishers are slowed, and if too much does, neighbours have to keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf

from tidings.broker.settings import Settings
from tidings.core.parcel import Parcel
from tidings.core.trace import Reason

# Why a parcel cannot go on, and could later. A strategy that never reroutes has no way left as soon
# as its one link fails. A full queue is no such reason: what waits would come back to it.
NO_WAY_LEFT = frozenset(
    {Reason.EXHAUSTED, Reason.NO_ROUTE, Reason.UNACKNOWLEDGED, Reason.LINK_DOWN}
)
LONGEST_PAUSE = 32.0  # times the shortest
PAUSE_PER_AGE = 0.5  # so that a message's tries grow rarer by the same factor each time
LAST_TRY = 0.75  # of what receivers remember; the rest is for travel, queues and repeats


def may_wait(parcel: Parcel, reason: str, settings: Settings, now: float) -> bool:
    """May a parcel be tried again that cannot go on for this reason, and could that help?"""
    if parcel.durable:
        return True
    if settings.exhausted == "drop" or not is_fresh(parcel, settings, now):
        return False
    # Those who waited for the same link come together: the queue is full of their own kind.
    no_way_left = reason in NO_WAY_LEFT or (reason == Reason.QUEUE_FULL and parcel.restarts > 0)
    return no_way_left and now + settings.retry_every_s <= parcel.expires_at


def is_fresh(parcel: Parcel, settings: Settings, now: float) -> bool:
    """Once its destination may have forgotten it, a message could be delivered twice."""
    return now - parcel.born_at < LAST_TRY * settings.remember_s


class WaitingRoom:
    """Parcels that will be tried again, in the order of when."""

    def __init__(self, settings: Settings) -> None:
        self._every_s = settings.retry_every_s
        self._most, self._most_bytes = settings.waiting_parcels, settings.waiting_bytes
        self.size_bytes = self.durable_bytes = 0  # of all, and of those that must not be lost
        self._waiting: list[tuple[float, int, Parcel]] = []  # heap of (due at, serial, parcel)
        self._serial = 0
        self._all_by = -inf  # when the last will be tried, at the latest
        self.due_at = inf  # when the first will be tried

    def __iter__(self) -> Iterator[Parcel]:
        return (parcel for _, _, parcel in self._waiting)

    def take(self, parcel: Parcel, now: float) -> bool:
        """Keep a parcel until its next try; False if the room is full, which it never is for what
        must not be lost."""
        full = len(self._waiting) >= self._most or self.size_bytes >= self._most_bytes
        if full and not parcel.durable:
            return False
        self._weigh(parcel, 1)
        age_s, shortest_s = now - parcel.born_at, self._every_s
        pause_s = max(shortest_s, min(PAUSE_PER_AGE * age_s, LONGEST_PAUSE * shortest_s))
        self._serial += 1
        due_at = now + pause_s
        heappush(self._waiting, (due_at, self._serial, parcel))
        self.due_at, self._all_by = self._waiting[0][0], max(self._all_by, due_at)
        return True

    def due(self, now: float) -> Iterator[Parcel]:
        """Parcels whose time has come; each is given out once."""
        while self.due_at <= now:
            parcel = heappop(self._waiting)[2]
            self._weigh(parcel, -1)
            self.due_at = self._waiting[0][0] if self._waiting else inf
            yield parcel

    def _weigh(self, parcel: Parcel, sign: int) -> None:
        self.size_bytes += sign * parcel.size_bytes
        if parcel.durable:
            self.durable_bytes += sign * parcel.size_bytes

    def call_all(self, now: float) -> None:
        """The way that they waited for is given up, and there may be another: all try now."""
        self._waiting = [(min(due, now), serial, parcel) for due, serial, parcel in self._waiting]
        heapify(self._waiting)
        self.due_at, self._all_by = (now, now) if self._waiting else (inf, -inf)

    def hasten(self, now: float) -> None:
        """Something has changed for the better: all shall try soon."""
        soon = now + self._every_s
        if self._all_by <= soon:  # good news comes in floods
            return
        self._all_by = soon
        self._waiting = [(min(due, soon), serial, p) for due, serial, p in self._waiting]
        heapify(self._waiting)
        self.due_at = min(self.due_at, soon) if self._waiting else inf
