"""By which paths do messages from here to a destination go at the moment, and until when?

A flow
------
Harmony, sections 2.1 and 2.2. A flow is all messages from this broker to one destination broker
with the same deadlines and one level of availability. Where the subscriptions there have several
deadlines, the flow serves the tightest that some path meets: a deadline that no path meets is no
reason to miss the others too.

When its paths change
---------------------
- The time has come to look for better ones, and there is one that is better by enough.
- A link on them is gone: then the best that are left are taken, however little is gained.
- A link on them takes longer than its budget allows: likewise.
- They do not meet the deadline, and others do or are better by enough.

How it begins
-------------
Every message may have a deadline of its own. So a new flow goes on with the paths of the flow that
began before it, and looks for better ones when that flow would have; only if they do not serve it,
it begins with paths of its own. So paths do not change from message to message either.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import inf

from tidings.core.contract import Destination
from tidings.core.graphs.reliability import disjoint
from tidings.routing.base import View
from tidings.routing.harmony.candidates import Paths
from tidings.routing.harmony.flow import Flow, Key, Recent, budget, troubles
from tidings.routing.harmony.selection import PathChoices
from tidings.routing.options import HarmonyOptions

WORTHWHILE_GAIN = 0.001  # of availability: what selection can tell apart


class Flows:
    """All flows of one broker under one strategy."""

    def __init__(self, options: HarmonyOptions, qos: bool, multipath: bool) -> None:
        self._options, self._qos, self._multipath = options, qos, multipath
        self._flows = Recent()
        self._begun = Recent()  # by destination, level and number of paths: the last one
        self._version = -1
        self._choices: PathChoices
        self._reporting: frozenset[str] = frozenset()  # brokers, when the view was last looked at

    def get(self, destination: Destination, view: View, now: float) -> Flow:
        """The flow to a destination, with paths that are right for this instant."""
        groups = destination.groups
        level = destination.availability if self._multipath else 0.0
        key: Key
        if not self._qos or not groups:
            key = (destination.broker, level, inf)
        elif len(groups) == 1:
            key = (destination.broker, level, groups[0].deadline_s)
        else:
            later_s = [group.deadline_s for group in groups[1:]]
            key = (destination.broker, level, groups[0].deadline_s, *later_s)
        flow = self._flows.young.get(key)
        if flow is None:
            flow = self._flows.find(key) or self._begin(key, view, now)
        if flow.version != view.version or now >= flow.check_at:
            self._review(flow, key, view, now)
        return flow

    def _begin(self, key: Key, view: View, now: float) -> Flow:
        """A new flow, with the paths of the last that began and has as many."""
        self._look(view)
        flow, (target, level) = Flow(), key[:2]
        kind = (target, level, len(self._choices.choose(target, self._aim_s(key), level)))
        before = self._begun.find(kind)
        if before is not None:
            flow.paths, flow.budgets = before.paths, before.budgets
            flow.check_at, flow.troubles = before.check_at, before.troubles
        self._review(flow, key, view, now)
        self._begun.put(kind, flow)
        self._flows.put(key, flow)
        return flow

    # ---- shall it change?

    def _review(self, flow: Flow, key: Key, view: View, now: float) -> None:
        self._look(view)
        due = now >= flow.check_at or not flow.paths
        if not flow.paths or self._choices.last_s(flow.paths) == inf or self._exceeded(flow):
            self._change(flow, key)
        elif due or self._strays(flow, key):
            self._reconsider(flow, key, due)
        if due:
            flow.check_at = now + self._options.recheck_s
        flow.version = view.version

    def _look(self, view: View) -> None:
        """Forget what followed from an older view."""
        if view.version != self._version:
            self._version = view.version
            self._choices = PathChoices(view, self._options, self._multipath)
            self._forget_who_left(view)

    def _forget_who_left(self, view: View) -> None:
        """Nothing is kept of flows to brokers that report no more."""
        if self._reporting.issubset(view.links):
            if len(self._reporting) < len(view.links):
                self._reporting = frozenset(view.links)
            return
        left, self._reporting = self._reporting.difference(view.links), frozenset(view.links)
        self._flows.keep(lambda key: key[0] not in left)
        self._begun.keep(lambda key: key[0] not in left)

    def _exceeded(self, flow: Flow) -> bool:
        """Does a link take longer than its budget allows?"""
        delays = self._choices.delays
        return any(
            delays[a][b] > expected_s + budget.share_s
            for path, budget in zip(flow.paths, flow.budgets, strict=False)
            for (a, b), expected_s in zip(pairwise(path), budget.expected_s, strict=True)
        )

    def _aim_s(self, key: Key) -> float:
        """The tightest deadline that some path meets; if none, the loosest."""
        best_s = self._choices.best_s(key[0])
        deadlines: tuple[float, ...] = key[2:]
        return next((s for s in deadlines if best_s <= s), key[-1])

    def _strays(self, flow: Flow, key: Key) -> bool:
        """Does it serve another deadline than it should, or fail to meet its own?"""
        tightest_s = key[2]
        if flow.deadline_s == tightest_s and (flow.budgets or tightest_s == inf):
            return False
        aim_s = self._aim_s(key)
        return flow.deadline_s != aim_s or (aim_s < inf and not flow.budgets)

    def _reconsider(self, flow: Flow, key: Key, due: bool) -> None:
        """Leave paths that work for others that serve the flow where these do not; or, if they
        were used for long enough or are late, for others that are better by enough."""
        aim_s, choices, used = self._aim_s(key), self._choices, flow.paths
        target, level = key[:2]
        found = choices.choose(target, aim_s, level)
        if found != used:
            may_improve = due or choices.last_s(used) > aim_s
            if self._serves(found, used, aim_s, level) or (
                may_improve and self._is_better(found, used)
            ):
                used = found
        # Even the same paths have another margin now, and perhaps no trouble any more.
        self._adopt(flow, key, used, aim_s)

    def _serves(self, found: Paths, used: Paths, deadline_s: float, level: float) -> bool:
        """Does it give the flow what it asks for, where those in use do not?"""
        choices = self._choices
        if choices.last_s(found) <= deadline_s < choices.last_s(used):
            return True
        if not self._multipath:
            return False
        if len(found) != len(used) or _independent(found) > _independent(used):
            return True
        return choices.available(found) >= level > choices.available(used)

    def _is_better(self, found: Paths, used: Paths) -> bool:
        """By enough to change paths that work."""
        choices, worth_it = self._choices, 1 - self._options.improvement
        new_s, old_s = choices.first_s(found), choices.first_s(used)
        if new_s <= worth_it * old_s:
            return True
        if not self._multipath:
            return False
        if choices.available(found) - choices.available(used) >= WORTHWHILE_GAIN:
            return True
        return new_s <= old_s and choices.last_s(found) <= worth_it * choices.last_s(used)

    # ---- what shall it be?

    def _change(self, flow: Flow, key: Key) -> None:
        aim_s, (target, level) = self._aim_s(key), key[:2]
        self._adopt(flow, key, self._choices.choose(target, aim_s, level), aim_s)

    def _adopt(self, flow: Flow, key: Key, paths: Paths, deadline_s: float) -> None:
        choices, level = self._choices, key[1]
        flow.paths, flow.budgets, flow.deadline_s = paths, (), deadline_s
        if choices.last_s(paths) <= deadline_s < inf:
            flow.budgets = tuple([budget(choices.delays, path, deadline_s) for path in paths])
        available = choices.available(paths) if level else 1.0
        before, flow.troubles, warnings = flow.troubles, {}, list[str]()
        for kind, how_bad, words in troubles(key, paths, choices.first_s(paths), available):
            flow.troubles[kind] = how_bad
            if how_bad > before.get(kind, -inf):
                warnings.append(words)
        flow.warning = " ".join(warnings)


def _independent(paths: Paths) -> bool:
    """Does no failure break two of them?"""
    return all(disjoint(a, b) for a, b in combinations(paths, 2))
