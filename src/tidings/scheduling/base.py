"""The question every scheduling policy answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tidings.core.message import Parcel


class Queue(Protocol):
    """Parcels that wait for one link."""

    def push(self, parcel: Parcel, now: float) -> None: ...

    def pop(self, now: float) -> Parcel | None:
        """The parcel that is to leave first at this instant; None when nothing waits."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Parcel]:
        """All that waits, in any order: for those who count what is in flight."""
        ...
