"""Which paths to a destination are there to choose from?

The shortest ones, as many as the options say, and only those that meet the deadline as long as any
does. If no two of them are disjoint, two that are disjoint are looked for beyond them.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import combinations, islice
from math import inf

from tidings.core.graphs.disjoint import disjoint_pair
from tidings.core.graphs.paths import BrokerPath, Graph, by_rank, distance, k_shortest
from tidings.core.graphs.reliability import disjoint

MOST_CHOICES = 100  # looked at when the two disjoint ones of least total delay are not in time

Paths = tuple[BrokerPath, ...]


class Candidates:
    """The shortest paths from one broker to another, among which to choose."""

    def __init__(self, delays: Graph, source: str, target: str, choices: int) -> None:
        self._delays, self._ends = delays, (source, target)
        self._ranked = tuple(k_shortest(delays, source, target, choices))
        self._delays_s = [distance(delays, path) for path in self._ranked]

    def within(self, deadline_s: float) -> Paths:
        """Those that meet the deadline, or all if none does. Two of them are disjoint, if there are
        two disjoint paths that meet it."""
        if not self._ranked or self._delays_s[0] > deadline_s:
            deadline_s = inf
        count = bisect_right(self._delays_s, deadline_s)
        if count < len(self._ranked) or self._suffice:
            return self._ranked[:count]  # if some are late, so are all paths that come after them
        two_s = [distance(self._delays, path) for path in self._two]
        if not two_s or sum(two_s) > 2 * deadline_s:
            return self._ranked
        if max(two_s) <= deadline_s:
            return self._with_two
        return self._searched if self._searched_s <= deadline_s else self._ranked

    @cached_property
    def _suffice(self) -> bool:
        return any(disjoint(a, b) for a, b in combinations(self._ranked, 2))

    @cached_property
    def _two(self) -> Paths:
        return disjoint_pair(self._delays, *self._ends)

    @cached_property
    def _with_two(self) -> Paths:
        found = {*self._ranked, *self._two}
        return tuple(sorted(found, key=lambda path: (distance(self._delays, path), path)))

    @cached_property
    def _searched(self) -> Paths:
        """The first paths, up to the one that is disjoint from an earlier one; empty if none is.

        Needed if there are disjoint paths, but the two that are shortest together are not both in
        time. Whether two others are is NP-complete, so this looks at the first MOST_CHOICES only.
        """
        found: list[BrokerPath] = []
        for path in islice(by_rank(self._delays, *self._ends), MOST_CHOICES):
            found.append(path)
            if any(disjoint(path, other) for other in found):
                return tuple(found)
        return ()

    @cached_property
    def _searched_s(self) -> float:
        """The deadline that they need; inf if none are disjoint."""
        return distance(self._delays, self._searched[-1]) if self._searched else inf
