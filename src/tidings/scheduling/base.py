"""The question every scheduling policy answers, and what it may look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tidings.core.links.outlook import Outlook
from tidings.core.parcel import Parcel


class Prospects(Protocol):
    """What lies beyond one link, as routing sees it. The broker keeps it up to date."""

    @property
    def version(self) -> int:
        """Changes whenever the rest may have."""
        ...

    @property
    def s_per_byte(self) -> float:
        """The mean time that this link needs for a byte."""
        ...

    def outlook(self, parcel: Parcel, destination: str) -> Outlook | None:
        """The way of a parcel that leaves over this link; None if nothing is known of it."""
        ...


class Queue(Protocol):
    """Parcels that wait for one link."""

    def push(self, parcel: Parcel, now: float) -> None: ...

    def pop(self, now: float) -> Parcel | None:
        """The parcel that is to leave first at this instant; None when nothing waits."""
        ...

    def doomed(self, now: float) -> Iterator[Parcel]:
        """Parcels that are not worth sending any more: each is given out, and waits no longer."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Parcel]:
        """All that waits, in any order: for those who count what is in flight."""
        ...
