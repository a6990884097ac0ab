"""`oracle`: the shortest way around all failures, present and to come.

What it knows
-------------
DCRD, section IV.B: the upper bound of what any strategy can reach, for it knows the condition of
the whole network. Only a simulator can run it. A link takes a message if it is not failing at the
instant at which the message is put on it; losses are not known even here.

The search
----------
Where the path of least delay is free of failures, and delays are what they are believed to be,
nothing is faster. Otherwise Dijkstra's search runs over time: each broker is reached as early as
possible, and goes on at that instant. Every broker on the way searches again from its own instant,
and finds the rest of the same path.

Where it is not the best
------------------------
Messages do not wait. So a message that reaches a broker early may find a link failing that takes a
later message, if the failure ends in between. Failures that last longer than a message travels make
that rare.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise
from math import inf, isclose

from tidings.core.graphs.paths import BrokerPath, shortest_from
from tidings.core.parcel import Parcel
from tidings.routing.base import NeverReroutes, Route, View, by_next_hop
from tidings.routing.options import Options
from tidings.routing.weights import expected_delay


class Oracle(NeverReroutes):
    """Earliest arrival at every destination, by foresight."""

    def __init__(self, options: Options) -> None:
        assert options.foresight is not None, "only a simulator can tell what will fail"
        self._crossing_s = options.foresight
        self._version = -1
        self._shortest: dict[str, BrokerPath] = {}

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        if view.version != self._version:
            self._version = view.version
            self._shortest = dict(shortest_from(expected_delay(view)[0], view.me).paths)
        next_hop, missing = {}, set()
        for destination in parcel.destinations:
            target = destination.broker
            path = self._shortest.get(target, ())
            if self._is_free(path, parcel.path, view, now):
                next_hop[target] = path[1]
            else:
                missing.add(target)
        if missing:
            next_hop |= self._around(missing, parcel.path, view, now)
        return by_next_hop(parcel.destinations, next_hop, ())

    def _is_free(self, path: BrokerPath, held: BrokerPath, view: View, now: float) -> bool:
        """Is every link of a path as fast as it is believed to be, for what leaves now?"""
        if len(path) < 2 or path[1] not in view.neighbours:
            return False
        at = now
        for here, onward in pairwise(path):
            crossing_s = self._crossing_s(here, onward, at)
            if onward in held or not isclose(crossing_s, view.links[here][onward].delay_s):
                return False
            at += crossing_s
        return True

    def _around(
        self, missing: set[str], held: BrokerPath, view: View, now: float
    ) -> dict[str, str]:
        """The next hop to each of those who can be reached at all."""
        found: dict[str, str] = {}
        for broker, next_hop in self._by_arrival(held, view, now):
            if broker in missing:
                found[broker] = next_hop
                if len(found) == len(missing):
                    break
        return found

    def _by_arrival(self, held: BrokerPath, view: View, now: float) -> Iterator[tuple[str, str]]:
        """All who can be reached, earliest first, each with the neighbour by way of whom; of equal
        ways the one of fewer links, and then the neighbour whose name comes first."""
        crossing_s, links = self._crossing_s, view.links
        done = set(held) - {view.me}
        least: dict[str, tuple[float, int, str]] = {}
        waiting = [(now, 0, view.me, "")]
        while waiting:
            at, steps, here, first = heappop(waiting)
            if here in done:
                continue
            done.add(here)
            if first:
                yield here, first
            for onward in links.get(here, {}):
                if onward in done or not (first or onward in view.neighbours):
                    continue
                way = (at + crossing_s(here, onward, at), steps + 1, first or onward)
                known = least.get(onward)
                if way[0] < inf and (known is None or way < known):
                    least[onward] = way
                    heappush(waiting, (way[0], way[1], onward, way[2]))
