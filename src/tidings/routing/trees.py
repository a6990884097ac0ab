"""`d-tree` and `r-tree`: every destination by its best path, in the order of one weight.

Two trees that differ only in what they call best are one router and two weights (DCRD, section
IV.B): the least expected delay, or the fewest links and, among equals, the least delay. All brokers
with the same view agree on the order of paths, so next hops join up to the publisher's own path.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.core.contract import Destination
from tidings.core.graphs.paths import BrokerPath, shortest_from
from tidings.core.parcel import Parcel
from tidings.routing.base import NeverReroutes, Route, View, by_next_hop
from tidings.routing.weights import Weight


class Tree(NeverReroutes):
    """Shortest paths by one weight, computed anew whenever the view changes."""

    def __init__(self, weight: Weight) -> None:
        self._weight = weight
        self._version = -1
        self._next_hop: dict[str, str] = {}
        self._paths: Mapping[str, BrokerPath] = {}
        # Of the parcel before: most that follow each other are owed to the same brokers.
        self._owed: tuple[Destination, ...] = ()
        self._taken: BrokerPath = ()
        self._route = Route(())

    def way(self, destination: str, view: View) -> BrokerPath:
        if view.version != self._version:
            self._grow(view)
        return self._paths.get(destination, ())

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        if view.version != self._version:
            self._grow(view)
        owed, taken = parcel.destinations, parcel.path
        if owed is not self._owed or taken != self._taken:
            self._owed, self._taken = owed, taken
            self._route = by_next_hop(owed, self._next_hop, taken)
        return self._route

    def _grow(self, view: View) -> None:
        graph, then = self._weight(view)
        best = shortest_from(graph, view.me, then)
        hops = {target: best.next_hop(target) for target in best.paths}
        up = set(view.neighbours)
        self._next_hop = {target: hop for target, hop in hops.items() if hop in up}
        self._paths = best.paths
        self._version = view.version
        self._owed, self._taken, self._route = (), (), Route(())
