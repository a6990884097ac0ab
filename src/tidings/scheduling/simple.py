"""The two classical orders: first come, and shortest remaining lifetime.

Remaining lifetimes all shrink at the same pace, so their order never changes while parcels wait: a
heap by the instant of expiry is exact. A message owed to several subscriptions has several
lifetimes; as in the bounded-delay paper (section 6.1) their average counts. If only those that have
not ended are averaged, the average rises whenever one ends: so the parcel at the top of the heap is
looked at again, and goes back if its average has risen.

A parcel that has no chance to be in time is deleted when its turn has come, and only if the setting
says so (`delete = "all"`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

from tidings.core.parcel import Parcel
from tidings.scheduling.base import Prospects
from tidings.scheduling.chances import curves_of, doomed_from, must_arrive
from tidings.scheduling.options import BenefitOptions


class Simple:
    """What those policies share that look at chances only to delete."""

    def __init__(self, prospects: Prospects, options: BenefitOptions) -> None:
        self.prospects, self.options = prospects, options

    def is_doomed(self, parcel: Parcel, now: float) -> bool:
        if must_arrive(parcel):
            return False
        return doomed_from(curves_of(parcel, self.prospects), self.options.unlikely) <= now


class Fifo(Simple):
    """First in, first out."""

    def __init__(self, prospects: Prospects, options: BenefitOptions) -> None:
        super().__init__(prospects, options)
        self._waiting: deque[Parcel] = deque()

    def push(self, parcel: Parcel, now: float) -> None:
        self._waiting.append(parcel)

    def pop(self, now: float) -> Parcel | None:
        return self._waiting.popleft() if self._waiting else None

    def doomed(self, now: float) -> Iterator[Parcel]:
        if self.options.delete == "all":
            while self._waiting and self.is_doomed(self._waiting[0], now):
                yield self._waiting.popleft()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Parcel]:
        return iter(self._waiting)


class RemainingLifetime(Simple):
    """The parcel whose average remaining lifetime is shortest; ties by arrival."""

    def __init__(self, prospects: Prospects, options: BenefitOptions) -> None:
        super().__init__(prospects, options)
        self._heap: list[tuple[float, int, Parcel]] = []
        self._arrivals = 0
        self._now = -inf

    def push(self, parcel: Parcel, now: float) -> None:
        self._arrivals += 1
        self._now = max(self._now, now)
        heappush(self._heap, (self._ends_at(parcel, now), self._arrivals, parcel))

    def pop(self, now: float) -> Parcel | None:
        self._refresh(now)
        return heappop(self._heap)[2] if self._heap else None

    def doomed(self, now: float) -> Iterator[Parcel]:
        if self.options.delete == "all":
            self._refresh(now)
            while self._heap and self.is_doomed(self._heap[0][2], now):
                yield heappop(self._heap)[2]
                self._refresh(now)

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Parcel]:
        return (parcel for _, _, parcel in self._heap)

    def _ends_at(self, parcel: Parcel, now: float) -> float:
        return average_deadline_at(parcel, -inf if self.options.lifetimes == "all" else now)

    def _refresh(self, now: float) -> None:
        """Averages only rise, so the first one in the heap that is still true is the least of all.
        If the clock was set back, lifetimes that had ended go on, and all are computed again."""
        if now < self._now and self.options.lifetimes == "unexpired":
            self._heap = [(self._ends_at(p, now), number, p) for _, number, p in self._heap]
            heapify(self._heap)
        self._now, heap = now, self._heap
        while heap and heap[0][0] < (ends_at := self._ends_at(heap[0][2], now)):
            heapreplace(heap, (ends_at, heap[0][1], heap[0][2]))


def average_deadline_at(parcel: Parcel, now: float = -inf) -> float:
    """The mean instant at which the parcel's subscriptions call it late, of those that have not yet
    done so; when all have, the last such instant."""
    groups = [g for destination in parcel.destinations for g in destination.groups if g.count]
    alive = [group for group in groups if parcel.born_at + group.deadline_s > now]
    if not alive:
        last_s = max((group.deadline_s for group in groups), default=inf)
        return parcel.born_at + last_s
    count = sum(group.count for group in alive)
    return parcel.born_at + sum(group.deadline_s * group.count for group in alive) / count
