"""Where do parcels wait for which no path is known just now?

Durable messages, and with `exhausted = "retry"` those that have tried every path, are routed afresh
after a while, the older the more rarely, until they are late for everybody. A link that comes up,
here or anywhere, makes all of them try soon.

What is not durable is given up earlier: it may have arrived although no answer came, and a receiver
knows a repeat for as long as it remembers and no longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf

from tidings.core.message import Parcel

LONGEST_PAUSE = 32.0  # times the shortest
PAUSE_PER_AGE = 0.5  # so that a message's tries grow rarer by the same factor each time
LAST_TRY = 0.75  # of what receivers remember; the rest is for travel, queues and repeats


class WaitingRoom:
    """Parcels that will be tried again, in the order of when."""

    def __init__(self, retry_every_s: float, most: int) -> None:
        self._every_s, self._most = retry_every_s, most
        self._waiting: list[tuple[float, int, Parcel]] = []  # heap of (due at, serial, parcel)
        self._serial = 0
        self._all_by = -inf  # when the last will be tried, at the latest
        self.due_at = inf  # when the first will be tried

    def __iter__(self) -> Iterator[Parcel]:
        return (parcel for _, _, parcel in self._waiting)

    def take(self, parcel: Parcel, now: float) -> bool:
        """Keep a parcel until its next try; False if the room is full, which it never is for what
        must not be lost."""
        if len(self._waiting) >= self._most and not parcel.durable:
            return False
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
            self.due_at = self._waiting[0][0] if self._waiting else inf
            yield parcel

    def hasten(self, now: float) -> None:
        """Something has changed for the better: all shall try soon."""
        soon = now + self._every_s
        if self._all_by <= soon:  # good news comes in floods
            return
        self._all_by = soon
        self._waiting = [(min(due, soon), serial, p) for due, serial, p in self._waiting]
        heapify(self._waiting)
        self.due_at = min(self.due_at, soon) if self._waiting else inf
