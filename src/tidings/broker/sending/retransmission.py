"""Who still owes an answer: transmissions that wait for their acknowledgement.

One heap of instants serves all links; an entry whose transmission was acknowledged meanwhile is
skipped when it comes up, which is cheaper than taking it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf

from tidings.broker.frames import Reliable
from tidings.core.parcel import Parcel
from tidings.core.values import ChangingValue

_STALE_ENTRIES = 64  # below this a heap of answered transmissions is not worth rebuilding


class Pending(ChangingValue):
    """One transmission without an answer. `parcel` is None for a control frame."""

    neighbour: str
    frame: Reliable
    parcel: Parcel | None
    size_bytes: int
    sent_at: float
    attempt: int = 1


class Unanswered:
    """All transmissions of one broker that wait for an acknowledgement."""

    def __init__(self) -> None:
        self._pending: dict[int, Pending] = {}
        self._due: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._pending)

    def wait(self, transmission: int, pending: Pending, until: float) -> None:
        """Expect an answer until then. Called again for each further attempt."""
        self._pending[transmission] = pending
        heappush(self._due, (until, transmission))

    def answered(self, transmission: int, neighbour: str) -> Pending | None:
        """A neighbour acknowledged the transmission; None if nobody waits for it any more, or it
        was sent to somebody else."""
        pending = self._pending.get(transmission)
        if pending is None or pending.neighbour != neighbour:
            return None
        del self._pending[transmission]
        return pending

    def first_due(self) -> float:
        """When the first answer will be overdue."""
        due, pending = self._due, self._pending
        if not pending:
            due.clear()
            return inf
        if len(due) > 2 * len(pending) + _STALE_ENTRIES:
            due[:] = [entry for entry in due if entry[1] in pending]
            heapify(due)
        while due[0][1] not in pending:
            heappop(due)
        return due[0][0]

    def overdue(self, now: float) -> Iterator[tuple[int, Pending]]:
        """Transmissions whose time is up, earliest first; each is given out and forgotten."""
        while self.first_due() <= now:
            _, transmission = heappop(self._due)
            yield transmission, self._pending.pop(transmission)

    def forget(self, neighbour: str) -> list[Pending]:
        """All that waits for one neighbour, which is not going to answer."""
        lost = [t for t, pending in self._pending.items() if pending.neighbour == neighbour]
        return [self._pending.pop(transmission) for transmission in lost]

    def recall(self, neighbour: str) -> list[tuple[Pending, Parcel]]:
        """All parcels that wait for one neighbour; control frames go on waiting."""
        waiting = [
            (pending, pending.parcel)
            for pending in self._pending.values()
            if pending.neighbour == neighbour and pending.parcel
        ]
        for pending, _ in waiting:
            del self._pending[pending.frame.transmission]
        return waiting

    def parcels(self) -> Iterator[Parcel]:
        return (pending.parcel for pending in self._pending.values() if pending.parcel)
