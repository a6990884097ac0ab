"""By which paths do messages from here to a destination go at the moment, and until when?

Harmony, sections 2.1 and 2.2. A flow is all messages from this broker to one destination broker
with one deadline and one level of availability. Its paths stay until

- the time has come to look for better ones, and there is one that is better by enough;
- a link on them is gone: then the best there are are taken, however little is gained;
- a link on them takes longer than its budget allows: likewise;
- they did not meet the deadline, and others do now.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import inf

from tidings.core.contract import Destination
from tidings.core.message import Budget
from tidings.core.paths import BrokerPath, Graph, shortest_from
from tidings.core.reliability import any_works, disjoint
from tidings.routing.base import View
from tidings.routing.options import HarmonyOptions
from tidings.routing.selection import (
    Candidates,
    Works,
    alike,
    delay_of,
    enough,
    measured,
    pair,
)
from tidings.routing.trees import usable_delays

WORTHWHILE_GAIN = 0.001  # of availability: what selection can tell apart
MOST_FLOWS = 10_000  # deadlines are free numbers, and memory ends

Key = tuple[str, float, float]  # destination broker, deadline, availability


class Flow:
    """The paths of one flow, as they were chosen last."""

    __slots__ = ("budgets", "check_at", "paths", "trouble", "version", "warning")

    def __init__(self) -> None:
        self.paths: tuple[BrokerPath, ...] = ()  # the shortest first; empty: there is no way
        self.budgets: tuple[Budget, ...] = ()  # of each path; empty: none is given
        self.check_at = inf
        self.version = -1  # of the view that was last looked at
        self.trouble = ""  # of which kind, so that it is told when it begins
        self.warning = ""

    def say(self) -> str:
        """What a person should know, once."""
        warning, self.warning = self.warning, ""
        return warning


class Flows:
    """All flows of one broker under one strategy."""

    def __init__(self, options: HarmonyOptions, qos: bool, multipath: bool) -> None:
        self._options, self._qos, self._multipath = options, qos, multipath
        self._flows: dict[Key, Flow] = {}
        self._version = -1
        self._delays: Graph = {}
        self._candidates: dict[str, Candidates] = {}  # by target; deadlines share them
        self._works: Works = alike

    def get(self, destination: Destination, view: View, now: float) -> Flow:
        """The flow to a destination, with paths that are right for this instant."""
        deadline_s = destination.deadline_s if self._qos else inf
        level = destination.availability if self._multipath else 0.0
        key = (destination.broker, deadline_s, level)
        flow = self._flows.get(key)
        if flow is None:
            if len(self._flows) >= MOST_FLOWS:
                del self._flows[next(iter(self._flows))]
            flow = self._flows[key] = Flow()
        if flow.version != view.version or now >= flow.check_at:
            self._review(flow, key, view, now)
        return flow

    # ---- shall it change?

    def _review(self, flow: Flow, key: Key, view: View, now: float) -> None:
        if view.version != self._version:
            self._look(view)
        due = now >= flow.check_at or not flow.paths
        unplanned = not flow.budgets and key[1] < inf  # late, or was so when last looked at
        if not flow.paths or self._broken(flow) or self._exceeded(flow):
            self._adopt(flow, key, self._choose(key, view))
        elif due or unplanned:
            found = self._choose(key, view)
            better = self._is_better(found, flow.paths, key)
            # What stays has another margin now, and perhaps no trouble any more.
            self._adopt(flow, key, found if better else flow.paths)
        if due:
            flow.check_at = now + self._options.recheck_s
        flow.version = view.version

    def _look(self, view: View) -> None:
        """Forget what followed from an older view."""
        self._version, self._delays, self._candidates = view.version, usable_delays(view), {}
        if self._options.failures == "measured" and self._multipath:
            self._works = measured(view)

    def _broken(self, flow: Flow) -> bool:
        return any(delay_of(self._delays, path) == inf for path in flow.paths)

    def _exceeded(self, flow: Flow) -> bool:
        """Does a link take longer than its budget allows?"""
        return any(
            self._delays[a][b] > expected_s + budget.share_s
            for path, budget in zip(flow.paths, flow.budgets, strict=False)
            for (a, b), expected_s in zip(pairwise(path), budget.expected_s, strict=True)
        )

    def _is_better(
        self, found: tuple[BrokerPath, ...], used: tuple[BrokerPath, ...], key: Key
    ) -> bool:
        """By enough to change paths that work."""
        new_s, old_s = self._delay_s(found), self._delay_s(used)
        worth_it = 1 - self._options.improvement
        if new_s <= key[1] < old_s or new_s <= worth_it * old_s:
            return True
        if not self._multipath or new_s > key[1] >= old_s:
            return False
        gain = any_works(found, self._works) - any_works(used, self._works)
        if gain >= WORTHWHILE_GAIN:
            return True
        if len(found) != len(used) or _independent(found) > _independent(used):
            return True
        longest_s = [max(delay_of(self._delays, path) for path in paths) for paths in (found, used)]
        return new_s <= old_s and longest_s[0] <= worth_it * longest_s[1]

    def _delay_s(self, paths: tuple[BrokerPath, ...]) -> float:
        """Of the copy that will be first."""
        return min([delay_of(self._delays, path) for path in paths], default=inf)

    # ---- what shall it be?

    def _choose(self, key: Key, view: View) -> tuple[BrokerPath, ...]:
        target, deadline_s, level = key
        options = self._options
        if target == view.me:
            return ()  # only nonsense from the wire owes something to the broker that holds it
        if not self._multipath:
            best = shortest_from(self._delays, view.me).path_to(target)
            return (best,) if best else ()
        if target not in self._candidates:
            self._candidates[target] = Candidates(self._delays, view.me, target, options.choices)
        ranked, works = self._candidates[target].within(deadline_s), self._works
        return enough(ranked, works, level, options.most_paths) if level else pair(ranked, works)

    def _adopt(self, flow: Flow, key: Key, paths: tuple[BrokerPath, ...]) -> None:
        _, deadline_s, level = key
        flow.paths, flow.budgets = paths, ()
        slowest_s = max([delay_of(self._delays, path) for path in paths], default=inf)
        if slowest_s <= deadline_s < inf:
            flow.budgets = tuple(budget(self._delays, path, deadline_s) for path in paths)
        available = any_works(paths, self._works) if level else 1.0
        trouble, warning = _trouble(key, paths, self._delay_s(paths), available)
        flow.warning = warning if trouble != flow.trouble else ""
        flow.trouble = trouble


def budget(delays: Graph, path: BrokerPath, deadline_s: float) -> Budget:
    """The latency margin, split equally among the links of a path that meets the deadline."""
    expected_s = tuple(delays[a][b] for a, b in pairwise(path))
    share_s = max(0.0, deadline_s - sum(expected_s)) / len(expected_s)
    return Budget(path[-1], share_s, expected_s)


def _independent(paths: tuple[BrokerPath, ...]) -> bool:
    """Does no failure break two of them?"""
    return all(disjoint(a, b) for a, b in combinations(paths, 2))


def _trouble(
    key: Key, paths: tuple[BrokerPath, ...], best_s: float, available: float
) -> tuple[str, str]:
    """What kind of trouble a flow is in, and how one says it."""
    target, deadline_s, level = key
    if not paths:
        return "unreachable", f"No path to {target} is known: messages to it cannot leave."
    if best_s > deadline_s:
        return "late", (
            f"No path to {target} meets its deadline: the best takes {best_s * 1000:.1f} ms, and "
            f"{deadline_s * 1000:g} ms are allowed. Messages go by it all the same."
        )
    if available < level:
        return "unavailable", (
            f"Paths to {target} are less available than asked for: {len(paths)} of them work with "
            f"a probability of {available:.4f}, not {level:g}, and no more help."
        )
    return "", ""
