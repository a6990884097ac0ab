"""Is there a second path that shares nothing with the first?

Bhandari's algorithm (1999; the idea is Suurballe's, 1974): of all pairs of paths without a common
broker between the ends, the one of least total weight. Take the best path and reverse its links:
going back over one gives its weight back. Find the best path in this graph, and keep of both paths
the links that the other does not reverse. Every broker is two nodes, one that is entered and one
that is left, so that a broker can be reversed as well as a link. This takes one search more than a
single path; a search through paths by rank may never end.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise

from tidings.core.graphs.paths import BrokerPath, Graph, k_shortest, units

_Node = tuple[str, bool]  # a broker; True: the node that is left, False: the one that is entered
_Steps = dict[_Node, dict[_Node, int]]


def disjoint_pair(graph: Graph, source: str, target: str) -> tuple[BrokerPath, ...]:
    """Two paths without a common broker between their ends, of least total weight; empty if there
    are no two."""
    best = k_shortest(graph, source, target, 1)
    if not best or source == target:
        return ()
    first = _nodes(best[0])
    second = _cheapest(_turned(_split(graph), first), (source, True), (target, False))
    if not second:
        return ()
    onward: dict[str, list[str]] = defaultdict(list)
    of_first, of_second = {*pairwise(first)}, {*pairwise(second)}
    for a, b in (of_first - _reversed(of_second)) | (of_second - _reversed(of_first)):
        if a[1]:  # a link, not the inside of a broker
            onward[a[0]].append(b[0])
    return tuple(_followed(onward, source, start, target) for start in sorted(onward[source]))


def _followed(onward: dict[str, list[str]], source: str, start: str, target: str) -> BrokerPath:
    path = [source, start]
    while path[-1] != target:
        path.append(onward[path[-1]][0])
    return tuple(path)


def _nodes(path: BrokerPath) -> list[_Node]:
    """What a path passes: out of its source, in and out of each broker, into its target."""
    return [node for a, b in pairwise(path) for node in ((a, True), (b, False))]


def _split(graph: Graph) -> _Steps:
    steps: _Steps = defaultdict(dict)
    for a, near in graph.items():
        steps[a, False][a, True] = 0
        for b, weight in near.items():
            steps[a, True][b, False] = units(weight)
            steps[b, False][b, True] = 0
    return steps


def _reversed(steps: set[tuple[_Node, _Node]]) -> set[tuple[_Node, _Node]]:
    return {(b, a) for a, b in steps}


def _turned(steps: _Steps, path: list[_Node]) -> _Steps:
    """With the steps of a path reversed, each at its negative weight."""
    for a, b in pairwise(path):
        weight = steps[a].pop(b)
        steps[b][a] = -weight
    return steps


def _cheapest(steps: _Steps, source: _Node, target: _Node) -> list[_Node]:
    """Bellman and Ford, by a queue of what has become cheaper: weights may be negative, but no
    round trip is, as the path that was turned is a best one."""
    cost, before = {source: 0}, dict[_Node, _Node]()
    waiting = deque([source])
    while waiting:
        here = waiting.popleft()
        for onward, weight in steps.get(here, {}).items():
            total = cost[here] + weight
            if onward not in cost or total < cost[onward]:
                cost[onward], before[onward] = total, here
                waiting.append(onward)
    if target not in cost:
        return []
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
    return path[::-1]
