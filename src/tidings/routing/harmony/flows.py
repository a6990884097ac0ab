"""By which paths do messages from here to a destination go at the moment, and until when?

Harmony, sections 2.1 and 2.2. A flow is all messages from this broker to one destination broker
with the same deadlines and one level of availability. Where the subscriptions there have several
deadlines, the flow serves the tightest that some path meets: one that nobody can keep is no reason
to give up the others. Its paths stay until

- the time has come to look for better ones, and there is one that is better by enough;
- a link on them is gone: then the best there are are taken, however little is gained;
- a link on them takes longer than its budget allows: likewise;
- they do not meet the deadline, and others do or are better by enough.

Deadlines may be as many as messages. A new flow therefore goes on with the paths of the one that
began before it, and looks for better ones when that would have; only if they do not serve it does
it begin with its own. So paths do not flap from message to message either.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import inf

from tidings.core.contract import Destination
from tidings.core.graphs.reliability import disjoint
from tidings.routing.base import View
from tidings.routing.harmony.flow import Flow, Key, Recent, budget, troubles
from tidings.routing.harmony.selection import Paths, Ways
from tidings.routing.options import HarmonyOptions

WORTHWHILE_GAIN = 0.001  # of availability: what selection can tell apart


class Flows:
    """All flows of one broker under one strategy."""

    def __init__(self, options: HarmonyOptions, qos: bool, multipath: bool) -> None:
        self._options, self._qos, self._multipath = options, qos, multipath
        self._flows = Recent()
        self._begun = Recent()  # by destination, level and number of paths: the last one
        self._version = -1
        self._ways: Ways

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
        kind = (target, level, len(self._ways.choose(target, self._aim_s(key), level)))
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
        if not flow.paths or self._ways.last_s(flow.paths) == inf or self._exceeded(flow):
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
            self._ways = Ways(view, self._options, self._multipath)

    def _exceeded(self, flow: Flow) -> bool:
        """Does a link take longer than its budget allows?"""
        delays = self._ways.delays
        return any(
            delays[a][b] > expected_s + budget.share_s
            for path, budget in zip(flow.paths, flow.budgets, strict=False)
            for (a, b), expected_s in zip(pairwise(path), budget.expected_s, strict=True)
        )

    def _aim_s(self, key: Key) -> float:
        """The tightest deadline that some path meets; if none, the loosest."""
        best_s = self._ways.best_s(key[0])
        return next((s for s in key[2:] if best_s <= s), key[-1])

    def _strays(self, flow: Flow, key: Key) -> bool:
        """Does it serve another deadline than it could, or fail to meet its own?"""
        tightest_s = key[2]
        if flow.deadline_s == tightest_s and (flow.budgets or tightest_s == inf):
            return False
        aim_s = self._aim_s(key)
        return flow.deadline_s != aim_s or (aim_s < inf and not flow.budgets)

    def _reconsider(self, flow: Flow, key: Key, due: bool) -> None:
        """Paths that work are left for what serves the flow where they do not, and, if they were
        used for long enough or are late, for what is better by enough."""
        aim_s, ways, used = self._aim_s(key), self._ways, flow.paths
        target, level = key[:2]
        found = ways.choose(target, aim_s, level)
        if found != used:
            may_improve = due or ways.last_s(used) > aim_s
            if self._serves(found, used, aim_s, level) or (
                may_improve and self._is_better(found, used)
            ):
                used = found
        # What stays has another margin now, and perhaps no trouble any more.
        self._adopt(flow, key, used, aim_s)

    def _serves(self, found: Paths, used: Paths, deadline_s: float, level: float) -> bool:
        """Does it give the flow what it asks for, where those in use do not?"""
        ways = self._ways
        if ways.last_s(found) <= deadline_s < ways.last_s(used):
            return True
        if not self._multipath:
            return False
        if len(found) != len(used) or _independent(found) > _independent(used):
            return True
        return ways.available(found) >= level > ways.available(used)

    def _is_better(self, found: Paths, used: Paths) -> bool:
        """By enough to change paths that work."""
        ways, worth_it = self._ways, 1 - self._options.improvement
        new_s, old_s = ways.first_s(found), ways.first_s(used)
        if new_s <= worth_it * old_s:
            return True
        if not self._multipath:
            return False
        if ways.available(found) - ways.available(used) >= WORTHWHILE_GAIN:
            return True
        return new_s <= old_s and ways.last_s(found) <= worth_it * ways.last_s(used)

    # ---- what shall it be?

    def _change(self, flow: Flow, key: Key) -> None:
        aim_s, (target, level) = self._aim_s(key), key[:2]
        self._adopt(flow, key, self._ways.choose(target, aim_s, level), aim_s)

    def _adopt(self, flow: Flow, key: Key, paths: Paths, deadline_s: float) -> None:
        ways, level = self._ways, key[1]
        flow.paths, flow.budgets, flow.deadline_s = paths, (), deadline_s
        if ways.last_s(paths) <= deadline_s < inf:
            flow.budgets = tuple([budget(ways.delays, path, deadline_s) for path in paths])
        available = ways.available(paths) if level else 1.0
        told, flow.troubles, said = flow.troubles, {}, list[str]()
        for kind, how_bad, words in troubles(key, paths, ways.first_s(paths), available):
            flow.troubles[kind] = how_bad
            if how_bad > told.get(kind, -inf):
                said.append(words)
        flow.warning = " ".join(said)


def _independent(paths: Paths) -> bool:
    """Does no failure break two of them?"""
    return all(disjoint(a, b) for a, b in combinations(paths, 2))
