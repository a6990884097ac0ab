"""With what probability does at least one of several paths work?

A path works if all its components do: its links, and the brokers between its ends (the source is
alive, since it asks, and without the destination nothing helps). Components fail independently of
each other, but paths that share components do not: the probability that several paths all work is
the product over the *union* of their components. Inclusion and exclusion turns these products into
the probability that any path works. It is exact, and the number of terms doubles with each path, so
there should be few paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from math import prod
from typing import TypeAlias

DIGITS = 12  # the error of a sum of floats is smaller, and must not look like a gain

Component: TypeAlias = frozenset[str]  # two brokers: the link between them; one: the broker


def components_of(path: Sequence[str]) -> frozenset[Component]:
    """All that must work for the path to work, without its two ends."""
    links = (frozenset(step) for step in pairwise(path))
    return frozenset([*links, *(frozenset((broker,)) for broker in path[1:-1])])


def disjoint(path: Sequence[str], other: Sequence[str]) -> bool:
    """Can no single failure between the ends break both?"""
    return components_of(path).isdisjoint(components_of(other))


def any_works(paths: Iterable[Sequence[str]], works: Callable[[Component], float]) -> float:
    """The probability that at least one of the paths works; 0 without any."""
    needed = [components_of(path) for path in paths]
    total = 0.0
    for size in range(1, len(needed) + 1):
        for chosen in combinations(needed, size):
            together = prod(map(works, frozenset().union(*chosen)))
            total += together if size % 2 else -together
    return min(1.0, max(0.0, round(total, DIGITS)))
