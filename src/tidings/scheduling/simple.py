"""The two classical orders: first come, and shortest remaining lifetime.

Remaining lifetimes all shrink at the same pace, so their order never changes while parcels wait: a
heap by the instant of expiry is exact. A message owed to several subscriptions has several
lifetimes; as in the bounded-delay paper (section 6.1) their average counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

from tidings.core.message import Parcel


class Fifo:
    """First in, first out."""

    def __init__(self) -> None:
        self._waiting: deque[Parcel] = deque()

    def push(self, parcel: Parcel, now: float) -> None:
        self._waiting.append(parcel)

    def pop(self, now: float) -> Parcel | None:
        return self._waiting.popleft() if self._waiting else None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Parcel]:
        return iter(self._waiting)


class RemainingLifetime:
    """The parcel whose average remaining lifetime is shortest; ties by arrival."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Parcel]] = []
        self._arrivals = 0

    def push(self, parcel: Parcel, now: float) -> None:
        self._arrivals += 1
        heappush(self._heap, (average_deadline_at(parcel), self._arrivals, parcel))

    def pop(self, now: float) -> Parcel | None:
        return heappop(self._heap)[2] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Parcel]:
        return (parcel for _, _, parcel in self._heap)


def average_deadline_at(parcel: Parcel) -> float:
    """The mean instant at which the parcel's subscriptions call it late."""
    groups = [group for destination in parcel.destinations for group in destination.groups]
    count = sum(group.count for group in groups)
    if count == 0:
        return inf
    return parcel.born_at + sum(group.deadline_s * group.count for group in groups) / count
