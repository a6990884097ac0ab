"""`balanced`: messages of one source take turns between trees that use different links.

The trees
---------
Where a link needs seconds for a message, the path of the least mean is the best for one message and
a queue for all the others: the other links of the overlay stand idle. So a source grows several
trees, one after the other. A link costs what it needs itself, and a toll: what a link needs on
average for the bytes of a message, times the share of the earlier trees that use it. The most
distant broker that is left is joined first, by its cheapest path; those that come later share that
path without a toll, because it carries one copy for all of them. (Nearest first, or the plain
shortest paths under the same tolls, join less and gain less.) Message after message, a source takes
the next tree. Where links take no time for bytes there is no toll, and this is `d-tree`.

No knowledge of load
--------------------
Where every source spreads its own messages over all links, the sum of all is spread too. So there
is nothing to measure, to advertise or to agree on, and nothing that could oscillate; the same view
gives the same trees. The source puts the whole paths into the envelope, and a broker that finds a
path broken plans the rest anew. No copy returns to a broker that has held it.

What it costs
-------------
A tree is grown when its turn comes and kept until the view changes. It takes a search for paths for
each of its leaves: measured, 1.4 ms for the 32 brokers of the bounded-delay paper, and 31 ms for
160 brokers with eight links each.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import inf
from statistics import fmean

from tidings.core.graphs.paths import BrokerPath, Graph, shortest_from
from tidings.core.parcel import Parcel
from tidings.routing.base import NeverReroutes, Route, View
from tidings.routing.plans import next_on, planned
from tidings.routing.weights import TYPICAL_BYTES, usable_delays

TREES = 8  # the turns of a source; 2 and 4 gained a little less

Tree = dict[str, BrokerPath]
Link = tuple[str, str]


class Balanced(NeverReroutes):
    """The trees of one source, and whose turn it is."""

    def __init__(self) -> None:
        self._version = -1
        self._delays: Graph = {}
        self._trees: list[Tree] = []
        self._uses: Counter[Link] = Counter()  # trees by the links that they use
        self._toll_s = 0.0  # for a link that all of them use
        self._turn = 0

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        paths = {path[-1]: path for path in parcel.plan if next_on(path, view) is not None}
        if any(destination.broker not in paths for destination in parcel.destinations):
            begins = len(parcel.path) == 1
            paths = (self._next_tree(view) if begins else _around(parcel, view)) | paths
        return planned(parcel.destinations, paths, view, parcel.path)

    def _next_tree(self, view: View) -> Tree:
        if view.version != self._version:
            self._look(view)
        turn = self._turn % TREES if self._toll_s else 0  # without tolls they would be alike
        self._turn += 1
        while len(self._trees) <= turn:
            tree = grown(self._delays, view.me, self._tolls())
            self._trees.append(tree)
            self._uses.update({link for path in tree.values() for link in pairwise(path)})
        return self._trees[turn]

    def _look(self, view: View) -> None:
        """Begin anew, by what is known of the links now."""
        self._delays, self._trees, self._uses = usable_delays(view), [], Counter()
        paces = [e.s_per_byte for near in view.links.values() for e in near.values()]
        self._toll_s = TYPICAL_BYTES * fmean(paces) if paces else 0.0
        self._version = view.version

    def _tolls(self) -> dict[Link, float]:
        """What a link costs beyond its own time, for being in demand."""
        return {link: self._toll_s * uses / len(self._trees) for link, uses in self._uses.items()}


def grown(delays: Graph, source: str, tolls: dict[Link, float]) -> Tree:
    """The paths from a source to all it can reach, so that they form one tree."""
    costs = {
        a: {b: delay + tolls.get((a, b), 0.0) for b, delay in near.items()}
        for a, near in delays.items()
    }
    tree: Tree = {source: (source,)}
    while True:
        best = shortest_from(costs, source)
        left = [(best.distance[broker], broker) for broker in best.paths.keys() - tree.keys()]
        if not left:
            return tree
        _join(tree, best.paths[max(left)[1]], costs, delays)


def _join(tree: Tree, path: BrokerPath, costs: dict[str, dict[str, float]], delays: Graph) -> None:
    """Add a path to the tree; its brokers have no other way in from now on."""
    for steps, (a, b) in enumerate(pairwise(path), 2):
        if b in tree:
            continue
        tree[b] = path[:steps]
        for near in costs.values():
            if b in near:
                near[b] = inf
        costs[a][b] = delays[a][b]


def _around(parcel: Parcel, view: View) -> Tree:
    """The shortest ways on, for a message whose own way has ended here."""
    return dict(shortest_from(usable_delays(view, parcel.path), view.me).paths)
