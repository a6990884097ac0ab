"""What does a broker ask of a strategy? `Router` of each; the others of those that can do more."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tidings.core.parcel import Parcel
from tidings.routing.base import Route, View


class Router(Protocol):
    """One strategy at one broker. It may keep state of its own; time is an argument."""

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        """Where next, for all destinations of a parcel that was published or has come in."""
        ...

    def reroute(self, parcel: Parcel, failed: str, view: View, now: float) -> Route:
        """Where instead, after `failed` never acknowledged the parcel. The parcel says so too: the
        link is among those that it has given up."""
        ...


@runtime_checkable
class Foretells(Protocol):
    """A strategy that can tell which way a message will go from here."""

    def way(self, destination: str, view: View) -> tuple[str, ...]:
        """The whole path from this broker, both ends included; empty if there is none."""
        ...


@runtime_checkable
class SendsCopies(Protocol):
    """A strategy that may send several copies of one message. A copy that fails is left to the
    others: if each of them waited and set out again, they would only become more."""

    redundant: bool  # it does so


@runtime_checkable
class Talks(Protocol):
    """A strategy whose routers at different brokers tell each other things. Brokers cannot read
    them: they carry them to all neighbours, and repeat them until they are acknowledged."""

    @property
    def has_news(self) -> bool:
        """Is there something to tell that no change of the view announces?"""
        ...

    def news(self, view: View) -> bytes | None:
        """What has changed since the last time, for all neighbours; None: nothing."""
        ...

    def introduction(self, view: View) -> bytes | None:
        """All there is to say, for a neighbour that may have missed any of it."""
        ...

    def hear(self, neighbour: str, news: bytes, serial: int, view: View) -> None:
        """News of a neighbour. Newer news has a higher serial, even if it comes first."""
        ...
