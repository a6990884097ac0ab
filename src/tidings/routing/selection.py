"""Which of the ways to a destination shall its messages take?

Harmony, section 2.3. Paths are ranked by delay; where there is a deadline, those that meet it are
the choice, as long as there are any. Of them one takes either two: a pair without a common link or
broker if there is one, and among such pairs the one that is most available; or as many as it takes
until some path exists with the probability that an application asks for.

What one measures of availability is not exact, so it is rounded to a thousandth, and of equals the
shorter paths win.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice
from math import inf

from tidings.core.disjoint import disjoint_pair
from tidings.core.paths import BrokerPath, Graph, by_rank, distance, k_shortest
from tidings.core.reliability import Part, any_works, disjoint
from tidings.routing.base import View

MOST_CHOICES = 100  # looked at when the two disjoint ones of least total delay are not in time
DIGITS = 3  # of an availability
ALIKE = 0.99  # the availability of everything, where all failures are taken to be alike

Works = Callable[[Part], float]


class Candidates:
    """The shortest paths from one broker to another, among which to choose."""

    def __init__(self, delays: Graph, source: str, target: str, choices: int) -> None:
        self._delays, self._ends = delays, (source, target)
        self._ranked = k_shortest(delays, source, target, choices)
        self._second: tuple[BrokerPath, ...] | None = None

    def within(self, deadline_s: float) -> list[BrokerPath]:
        """Those that meet the deadline, or all if none does; at least two of them disjoint, if any
        such two are."""
        if not self._ranked or distance(self._delays, self._ranked[0]) > deadline_s:
            deadline_s = inf
        found = [path for path in self._ranked if distance(self._delays, path) <= deadline_s]
        if _has_disjoint(found) or len(found) < len(self._ranked):
            return found  # in the second case, all that follow are late
        two = self._disjoint()
        if not two or sum(distance(self._delays, path) for path in two) > 2 * deadline_s:
            return found
        if all(distance(self._delays, path) <= deadline_s for path in two):
            return sorted({*found, *two}, key=lambda path: (distance(self._delays, path), path))
        return self._searched(deadline_s)

    def _disjoint(self) -> tuple[BrokerPath, ...]:
        if self._second is None:
            self._second = disjoint_pair(self._delays, *self._ends)
        return self._second

    def _searched(self, deadline_s: float) -> list[BrokerPath]:
        """There are disjoint paths, but the two that are shortest together are not both in time.
        Whether two others are is a hard question (it is NP-complete); this looks at the first
        many."""
        found: list[BrokerPath] = []
        for path in islice(by_rank(self._delays, *self._ends), MOST_CHOICES):
            if distance(self._delays, path) > deadline_s:
                break
            found.append(path)
            if any(disjoint(path, other) for other in found):
                return found
        return self._ranked


def _has_disjoint(paths: Sequence[BrokerPath]) -> bool:
    return any(disjoint(a, b) for a, b in combinations(paths, 2))


def pair(ranked: Sequence[BrokerPath], works: Works) -> tuple[BrokerPath, ...]:
    """Two of the paths, shorter first; the only one there is, or none."""
    if len(ranked) < 2:
        return tuple(ranked)

    def worth(two: tuple[BrokerPath, BrokerPath]) -> tuple[bool, float]:
        return disjoint(*two), round(any_works(two, works), DIGITS)

    return max(combinations(ranked, 2), key=worth)  # of equals the first, which is the shortest


def enough(
    ranked: Sequence[BrokerPath], works: Works, level: float, most: int
) -> tuple[BrokerPath, ...]:
    """The shortest path, and then whichever helps most, until some path works with this
    probability; fewer only if no more are allowed or none helps."""
    chosen = tuple(ranked[:1])
    available = any_works(chosen, works)
    while chosen and available < level and len(chosen) < most:
        rest = [path for path in ranked if path not in chosen]
        gains = [(any_works((*chosen, path), works), -place) for place, path in enumerate(rest)]
        best, place = max(gains, default=(0.0, 0))
        if best <= available:
            break
        chosen, available = (*chosen, rest[-place]), best
    return chosen


def measured(view: View) -> Works:
    """What the monitors of all brokers say. A link's availability is seen from its near end, and so
    is that of the link and the broker beyond; the best link to a broker tells how available that
    is, and what others lack beside it is their own fault."""
    brokers: dict[str, float] = {}
    for near in view.links.values():
        for b, estimate in near.items():
            brokers[b] = max(brokers.get(b, 0.0), estimate.availability)

    def works(part: Part) -> float:
        if len(part) == 1:
            return brokers.get(next(iter(part)), 1.0)
        seen = [
            view.links[a][b].availability / brokers[b]
            for a, b in (tuple(part), tuple(part)[::-1])
            if b in view.links.get(a, {}) and brokers[b] > 0
        ]
        return min(1.0, *seen) if seen else 0.0

    return works


def alike(part: Part) -> float:
    """All links and brokers are equally available: what the paper assumes."""
    return ALIKE


def delay_of(delays: Graph, path: BrokerPath) -> float:
    """The delay of a path; inf if a link of it is gone."""
    try:
        return distance(delays, path)
    except KeyError:
        return inf
