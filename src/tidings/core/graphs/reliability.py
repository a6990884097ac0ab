"""With what probability does at least one of several paths work?

A path works if all its parts do: its links, and the brokers between its ends (whoever asks is
alive, and without the destination nothing helps). Parts fail independently of each other, but paths
that share parts do not: the probability that several all work is the product over the *union* of
their parts, and inclusion and exclusion makes of these the probability that any does. It is exact,
and the number of terms doubles with each path, so there should be few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from math import prod
from typing import TypeAlias

DIGITS = 12  # sums of floats are off by less, and that must not look like a gain

Part: TypeAlias = frozenset[str]  # two brokers: the link between them; one: the broker itself


def parts(path: Sequence[str]) -> frozenset[Part]:
    """All that must work for the path to work; its ends are not asked about."""
    links = (frozenset(step) for step in pairwise(path))
    return frozenset([*links, *(frozenset((broker,)) for broker in path[1:-1])])


def disjoint(path: Sequence[str], other: Sequence[str]) -> bool:
    """Can no single failure between the ends break both?"""
    return not parts(path) & parts(other)


def any_works(paths: Iterable[Sequence[str]], works: Callable[[Part], float]) -> float:
    """The probability that at least one of the paths works; 0 without any."""
    needed = [parts(path) for path in paths]
    total = 0.0
    for size in range(1, len(needed) + 1):
        for chosen in combinations(needed, size):
            together = prod(map(works, frozenset().union(*chosen)))
            total += together if size % 2 else -together
    return min(1.0, max(0.0, round(total, DIGITS)))
