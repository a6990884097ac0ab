"""What holds a graph together?

Three answers about a graph without directions, `near[a][b]` and `near[b][a]` being the weight of
the link between a and b: what can be reached from a broker, the bridges (links without which
something could be reached no longer; Tarjan, 1974), and the least forest (Kruskal, 1956): of all
sets of links that reach as much as all do, the one of least weight. The order of links is total, so
brokers that know the same graph know the same forest: when all of them give up links outside of it
at once and without asking, everything stays within reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import TypeAlias

Joined: TypeAlias = Mapping[str, Mapping[str, float]]
Pair: TypeAlias = tuple[str, str]  # the smaller name first

MOST_NUMBERED = 1 << 14  # names whose numbers are kept: more than an overlay has brokers


def pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def reached_from(near: Joined, start: str) -> set[str]:
    """All that can be reached, the start included."""
    reached, waiting = {start}, [start]
    while waiting:
        for onward in near.get(waiting.pop(), {}):
            if onward not in reached:
                reached.add(onward)
                waiting.append(onward)
    return reached


def bridges(near: Joined) -> set[Pair]:
    """Links on no round trip. Depth first: a step into what is new is a bridge unless a later one
    leads from there back to where the search had been before it."""
    found: set[Pair] = set()
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}  # where one gets back to, without the step by which one came
    for root in near:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        path: list[tuple[str, str, Iterator[str]]] = [(root, "", iter(near[root]))]
        while path:
            here, before, rest = path[-1]
            for onward in rest:
                if onward not in order:
                    order[onward] = lowest[onward] = len(order)
                    path.append((onward, here, iter(near[onward])))
                    break
                if onward != before:
                    lowest[here] = min(lowest[here], order[onward])
            else:
                path.pop()
                if before:
                    lowest[before] = min(lowest[before], lowest[here])
                    if lowest[here] > order[before]:
                        found.add(pair(before, here))
    return found


def least_forest(near: Joined) -> set[Pair]:
    """The links of the forest. Among links of equal weight chance decides, the same everywhere:
    were it names, the first of them would have all the links."""
    links = []
    for a, others in near.items():
        number = number_of(a)
        links += [(weight, number ^ number_of(b), a, b) for b, weight in others.items() if a < b]
    links.sort()
    leader: dict[str, str] = {}
    forest: set[Pair] = set()
    for _, _, a, b in links:
        first, second = _leader(leader, a), _leader(leader, b)
        if first != second:
            leader[first] = second
            forest.add((a, b))
    return forest


def _leader(leader: dict[str, str], one: str) -> str:
    """Of all that are joined already, the one that stands for them."""
    while one in leader:
        above = leader[one]
        if above in leader:
            leader[one] = leader[above]  # shorter for the next who asks
        one = above
    return one


@lru_cache(maxsize=MOST_NUMBERED)
def number_of(name: str) -> int:
    """A number that looks drawn, and is the same wherever it is asked for."""
    return int.from_bytes(blake2b(name.encode(), digest_size=7).digest(), "big")
