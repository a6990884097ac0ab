"""Which of the ways to a destination shall its messages take?

Harmony, section 2.3. Paths are ranked by delay; where there is a deadline, those that meet it are
the choice, as long as there are any. Of them one takes either two: a pair without a common link or
broker if there is one, and among such pairs the one that is most available; or as many as it takes
until some path exists with the probability that an application asks for.

What one measures of availability is not exact, so it is rounded to a thousandth, and of equals the
shorter paths win.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations, islice
from math import inf

from tidings.core.graphs.disjoint import disjoint_pair
from tidings.core.graphs.paths import (
    BrokerPath,
    Graph,
    ShortestPaths,
    by_rank,
    distance,
    k_shortest,
    shortest_from,
)
from tidings.core.graphs.reliability import Part, any_works, disjoint
from tidings.routing.base import View
from tidings.routing.options import HarmonyOptions
from tidings.routing.weights import usable_delays

MOST_CHOSEN = 1_000  # selections remembered per view: levels are free numbers, and memory ends
MOST_CHOICES = 100  # looked at when the two disjoint ones of least total delay are not in time
DIGITS = 3  # of an availability
ALIKE = 0.99  # the availability of everything, where all failures are taken to be alike

Works = Callable[[Part], float]
Paths = tuple[BrokerPath, ...]


class Ways:
    """What there is to choose from in one view, sought once for however many flows."""

    def __init__(self, view: View, options: HarmonyOptions, multipath: bool) -> None:
        self.delays: Graph = usable_delays(view)
        self._view, self._options, self._multipath = view, options, multipath
        self._candidates: dict[str, Candidates] = {}  # by target; deadlines share them
        self._chosen: dict[tuple[float, Paths], Paths] = {}

    @cached_property
    def works(self) -> Works:
        return measured(self._view) if self._options.failures == "measured" else alike

    @cached_property
    def _nearest(self) -> ShortestPaths:
        return shortest_from(self.delays, self._view.me)

    def best_s(self, target: str) -> float:
        """The delay of the shortest path; inf if there is none."""
        return self._nearest.distance.get(target, inf)

    def choose(self, target: str, deadline_s: float, level: float) -> Paths:
        """The paths that a flow takes if it has none yet."""
        if target == self._view.me:
            return ()  # only nonsense from the wire owes something to the broker that holds it
        if not self._multipath:
            best = self._nearest.path_to(target)
            return (best,) if best else ()
        if target not in self._candidates:
            found = Candidates(self.delays, self._view.me, target, self._options.choices)
            self._candidates[target] = found
        ranked = self._candidates[target].within(deadline_s)
        if (level, ranked) not in self._chosen:
            if len(self._chosen) >= MOST_CHOSEN:
                self._chosen.clear()
            self._chosen[level, ranked] = self._several(ranked, level)
        return self._chosen[level, ranked]

    def _several(self, ranked: Paths, level: float) -> Paths:
        if level:
            return enough(ranked, self.works, level, self._options.most_paths)
        return pair(ranked, self.works)

    def first_s(self, paths: Paths) -> float:
        """When the first copy is there; inf if there are no paths."""
        return min([delay_of(self.delays, path) for path in paths], default=inf)

    def last_s(self, paths: Paths) -> float:
        """When all copies are; inf if a link is gone, or there are no paths."""
        return max([delay_of(self.delays, path) for path in paths], default=inf)

    def available(self, paths: Paths) -> float:
        return any_works(paths, self.works)


class Candidates:
    """The shortest paths from one broker to another, among which to choose."""

    def __init__(self, delays: Graph, source: str, target: str, choices: int) -> None:
        self._delays, self._ends = delays, (source, target)
        self._ranked = tuple(k_shortest(delays, source, target, choices))
        self._delays_s = [distance(delays, path) for path in self._ranked]

    def within(self, deadline_s: float) -> Paths:
        """Those that meet the deadline, or all if none does; at least two of them disjoint, if any
        such two are."""
        if not self._ranked or self._delays_s[0] > deadline_s:
            deadline_s = inf
        count = bisect_right(self._delays_s, deadline_s)
        if count < len(self._ranked) or self._suffice:
            return self._ranked[:count]  # in the first case, all that follow are late
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
        """There are disjoint paths, but the two that are shortest together are not both in time.
        Whether two others are is a hard question (it is NP-complete); this looks at the first
        many, up to the one that is disjoint to one before."""
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


def pair(ranked: Sequence[BrokerPath], works: Works) -> Paths:
    """Two of the paths, shorter first; the only one there is, or none."""
    if len(ranked) < 2:
        return tuple(ranked)

    def worth(two: tuple[BrokerPath, BrokerPath]) -> tuple[bool, float]:
        return disjoint(*two), round(any_works(two, works), DIGITS)

    return max(combinations(ranked, 2), key=worth)  # of equals the first, which is the shortest


def enough(ranked: Sequence[BrokerPath], works: Works, level: float, most: int) -> Paths:
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
    """What the monitors of all brokers say. A monitor sees a link and the broker beyond as one, and
    cannot tell which of them failed. So the link is taken to be as it was seen, by the end that saw
    the worse, and the broker to be no better than the best of the links to it: whoever is to blame,
    no part is believed to work more often than it does, and at worst there is a path too many."""
    brokers: dict[str, float] = {}
    for near in view.links.values():
        for b, estimate in near.items():
            brokers[b] = max(brokers.get(b, 0.0), estimate.availability)

    def works(part: Part) -> float:
        if len(part) == 1:
            return brokers.get(next(iter(part)), 1.0)
        a, b = part
        seen = [view.links[x][y] for x, y in ((a, b), (b, a)) if y in view.links.get(x, {})]
        return min([estimate.availability for estimate in seen], default=0.0)

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
