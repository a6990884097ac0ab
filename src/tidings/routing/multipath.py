"""`multipath`: every message twice, by two ways that share as little as possible.

DCRD, section IV.B: the publisher's broker sends one copy by the path of least expected delay, and
another by that one of the five shortest paths which has the fewest links in common with the first.
Both copies carry their whole paths, because brokers on the way could not tell which of the two they
hold. What fails is lost: the other copy is the only remedy. Destinations that share a next hop
share a copy, but a first and a second copy never merge.

A plan from the wire may be anything: a broker that finds no way on in it, or a way to a broker that
has held the copy before, gives the copy up.
"""

from __future__ import annotations

from tidings.core.graphs.paths import BrokerPath, Graph, k_shortest, overlap
from tidings.core.parcel import Parcel
from tidings.routing.base import NeverReroutes, Route, View
from tidings.routing.plans import by_target, planned
from tidings.routing.weights import expected_delay

CHOICES = 5  # the shortest paths among which the second is sought


class Multipath(NeverReroutes):
    """Two paths to each destination, sought when first needed and kept until the view changes."""

    redundant = True

    def __init__(self) -> None:
        self._version = -1
        self._delays: Graph = {}
        self._pairs: dict[str, tuple[BrokerPath, ...]] = {}

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        if parcel.plan:
            paths = by_target(parcel.plan)
            return planned(parcel.destinations, paths, view, parcel.path)
        if len(parcel.path) > 1:
            return Route((), parcel.destinations)  # its plan was lost on the way
        if view.version != self._version:
            self._version, self._delays, self._pairs = view.version, expected_delay(view)[0], {}
        return self._depart(parcel, view)

    def _depart(self, parcel: Parcel, view: View) -> Route:
        """The first copies, and then the second ones of all destinations that have two paths."""
        pairs = {d.broker: self._pair(view.me, d.broker) for d in parcel.destinations}
        first = {target: pair[0] for target, pair in pairs.items() if pair}
        second = {target: pair[1] for target, pair in pairs.items() if len(pair) > 1}
        if parcel.restarts:
            second = {}  # each copy that waited would become two, again and again
        twice = tuple([d for d in parcel.destinations if d.broker in second])
        routes = (
            planned(parcel.destinations, first, view, parcel.path),
            planned(twice, second, view, parcel.path),
        )
        # A destination is stranded once, even if neither copy can leave.
        stranded = dict.fromkeys(d for route in routes for d in route.stranded)
        return Route((*routes[0].hops, *routes[1].hops), tuple(stranded))

    def _pair(self, me: str, target: str) -> tuple[BrokerPath, ...]:
        """The shortest path, and the one to go with it; fewer if there are fewer."""
        pair = self._pairs.get(target)
        if pair is None:
            shortest = k_shortest(self._delays, me, target, CHOICES)
            others = sorted(shortest[1:], key=lambda path: overlap(path, shortest[0]))
            pair = self._pairs[target] = (*shortest[:1], *others[:1])  # the sort keeps their order
        return pair
