"""Which of the paths to a destination shall its messages take?

Harmony, section 2.3. Paths are ranked by delay; where there is a deadline, those that meet it are
the choice, as long as there are any. Of them one takes either two: a pair without a common link or
broker if there is one, and among such pairs the one that is most available; or as many as it takes
until some path exists with the probability that an application asks for.

A measured availability is not exact, so it is rounded to a thousandth, and of equals the shorter
paths win.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from math import inf

from tidings.core.cache import BoundedCache
from tidings.core.graphs.paths import BrokerPath, Graph, ShortestPaths, distance, shortest_from
from tidings.core.graphs.reliability import any_works, disjoint
from tidings.routing.base import View
from tidings.routing.harmony.availability import Works, alike, measured
from tidings.routing.harmony.candidates import Candidates, Paths
from tidings.routing.options import HarmonyOptions
from tidings.routing.weights import usable_delays

MOST_CHOSEN = 1_000  # selections kept per view: levels may be any number, and memory ends
DIGITS = 3  # of an availability


class PathChoices:
    """What there is to choose from in one view, sought once for however many flows."""

    def __init__(self, view: View, options: HarmonyOptions, multipath: bool) -> None:
        self.delays: Graph = usable_delays(view)
        self._view, self._options, self._multipath = view, options, multipath
        self._candidates: dict[str, Candidates] = {}  # by target; deadlines share them
        self._chosen = BoundedCache[tuple[float, Paths], Paths](MOST_CHOSEN)

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
            return ()  # it came over the wire, and makes no sense: the message is here already
        if not self._multipath:
            best = self._nearest.path_to(target)
            return (best,) if best else ()
        if target not in self._candidates:
            found = Candidates(self.delays, self._view.me, target, self._options.choices)
            self._candidates[target] = found
        ranked = self._candidates[target].within(deadline_s)
        chosen = self._chosen.get((level, ranked))
        if chosen is None:
            chosen = self._chosen.keep((level, ranked), self._several(ranked, level))
        return chosen

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


def delay_of(delays: Graph, path: BrokerPath) -> float:
    """The delay of a path; inf if a link of it is gone."""
    try:
        return distance(delays, path)
    except KeyError:
        return inf
