"""`flooding`: to everybody, once.

The first copy of a message that a broker sees goes to all neighbours but those it has passed
already; later copies end here. A copy that would go over a link that is down is given up and
counted as dropped: brokers that the flood cannot reach are behind such a link, so no message
vanishes without a trace. Where neighbours are forgotten when their links go, the publisher's broker
gives up destinations that no chain of known links leads to. (Links may go while a flood is on its
way, and then nobody notices.) An open message is given up only by a publisher's broker that is
alone.
"""

from __future__ import annotations

from tidings.core.contract import ANYBODY
from tidings.core.memory import Memory
from tidings.core.parcel import Parcel
from tidings.routing.base import Hop, NeverReroutes, Route, View
from tidings.routing.reach import reachable

REMEMBER_S = 120.0  # no copy of a flood comes so long after the first


class Flooding(NeverReroutes):
    """Every link once in each direction, for every message."""

    redundant = True

    def __init__(self) -> None:
        self._forwarded = Memory(REMEMBER_S)
        self._version, self._reached = -1, frozenset[str]()

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        again = self._forwarded.repeated(parcel.message.id, now)
        if again and len(parcel.path) > 1:  # one that begins here leaves, even if it does so again
            return Route(())
        onwards = [neighbour for neighbour in view.neighbours if neighbour not in parcel.path]
        hops = tuple(Hop(neighbour, parcel.destinations) for neighbour in onwards)
        cut_off = any(neighbour not in parcel.path for neighbour in view.severed)
        if cut_off:
            return Route(hops, parcel.destinations)
        if len(parcel.path) > 1:
            return Route(hops)
        if view.version != self._version:
            self._version, self._reached = view.version, reachable(view)
        reached, alone = self._reached, not hops
        lost = [
            d
            for d in parcel.destinations
            if (alone if d.broker == ANYBODY else d.broker not in reached)
        ]
        return Route(hops, tuple(lost))
