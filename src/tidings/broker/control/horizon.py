"""Of which brokers is it known here what they ask for? Of all, or of those within so many hops.

How far a broker is follows from the links that all report. A broker passes on what is asked for at
those that are nearer than the horizon, so that it comes as far as that and no farther. Links that
come and go move the horizon: who is beyond it is forgotten; of who comes within it, a neighbour on
the way there is asked; and what has come nearer is told again, as it may have to go farther now.
Once nothing changes any more, a broker knows just what is asked for within the horizon.
"""

from __future__ import annotations

from tidings.core.values import Value
from tidings.routing.base import View


class Moved(Value, frozen=True):
    """What follows from links that have come and gone."""

    beyond: tuple[str, ...]  # brokers to be forgotten
    nearer: tuple[str, ...]  # known, and from now on to be passed on
    unknown: tuple[tuple[str, str], ...]  # brokers that are near, each with whom to ask


class Horizon:
    """One broker's surroundings."""

    def __init__(self, view: View, hops: int) -> None:
        """`hops`: as far as anything is known; negative: everywhere."""
        self._view, self._most = view, hops
        self._everywhere = hops < 0
        self._version = (
            self._looked_at
        ) = -1  # the view, when hops were counted, and at the last look
        self._hops: dict[str, int] = {view.me: 0}  # of all within the horizon
        # Those that were passed on at the last look.
        self._inner: set[str] = {view.me} if hops > 0 else set()
        self._asked: dict[str, str] = {}  # neighbours, for those of whom nothing is known yet

    def is_outdated(self) -> bool:
        """Have links changed since the last look?"""
        return not self._everywhere and self._looked_at != self._view.version

    def keeps(self, origin: str) -> bool:
        """Is it known here what is asked for at that broker?"""
        if self._everywhere:
            return True
        self._measure()
        return origin in self._hops

    def passes_on(self, origin: str) -> bool:
        """Are neighbours told of it?"""
        if self._everywhere:
            return True
        self._measure()
        return self._hops.get(origin, self._most) < self._most

    def look(self, known: list[str]) -> Moved:
        """Compare the brokers of whom something is known with those that are near."""
        self._measure()
        self._looked_at, via = self._version, self._ways()
        beyond = tuple([origin for origin in known if origin not in self._hops])
        inner = {origin for origin, hops in self._hops.items() if hops < self._most}
        nearer = tuple(
            [origin for origin in known if origin in inner and origin not in self._inner]
        )
        missing = {origin: via[origin] for origin in sorted(via) if origin not in known}
        unknown = tuple([each for each in missing.items() if self._asked.get(each[0]) != each[1]])
        self._inner, self._asked = inner, missing
        return Moved(beyond, nearer, unknown)

    def _measure(self) -> None:
        """Breadth first, as far as the horizon."""
        view = self._view
        if self._version == view.version:
            return
        self._version = view.version
        self._hops = {view.me: 0}
        border, hops = [view.me], 0
        while border and hops < self._most:
            hops += 1
            beyond: list[str] = []
            for broker in border:
                for other in self._near(broker):
                    if other not in self._hops:
                        self._hops[other] = hops
                        beyond.append(other)
            border = beyond

    def _ways(self) -> dict[str, str]:
        """For each broker within the horizon the neighbour by which it was reached first."""
        via: dict[str, str] = {}
        for broker, hops in self._hops.items():  # in the order of hops
            if hops == 1:
                via[broker] = broker
            if broker != self._view.me:
                for other in self._near(broker):
                    if self._hops.get(other) == hops + 1:
                        via.setdefault(other, via[broker])
        return via

    def _near(self, broker: str) -> list[str]:
        """Of its own links this broker believes itself, of all others what they report."""
        view = self._view
        if broker == view.me:
            return list(view.neighbours)
        return sorted(view.links.get(broker, {}))
