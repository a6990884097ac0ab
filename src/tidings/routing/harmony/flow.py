"""What is a flow of messages: its paths, its budgets, and what is wrong with it?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import pairwise
from math import inf, nan
from typing import Any

from tidings.core.graphs.paths import BrokerPath, Graph
from tidings.core.message import Budget
from tidings.routing.harmony.candidates import Paths

MOST_FLOWS = 10_000  # deadlines may be any number, and memory ends

# Destination broker, availability, and deadlines there, the tightest first.
Key = tuple[str, float, float, *tuple[float, ...]]


class Flow:
    """The paths of one flow, as they were chosen last."""

    __slots__ = ("budgets", "check_at", "deadline_s", "paths", "troubles", "version", "warning")

    def __init__(self) -> None:
        self.paths: Paths = ()  # the shortest first; empty: there is no way
        self.budgets: tuple[Budget, ...] = ()  # of each path; empty: none is given
        self.deadline_s = nan  # the one that is served; none yet
        self.check_at = inf
        self.version = -1  # of the view that was last looked at
        self.troubles: dict[str, float] = {}  # kind → how bad: what gets worse is warned of
        self.warning = ""

    def take_warning(self) -> str:
        """What a person should know; given out once."""
        warning, self.warning = self.warning, ""
        return warning


class Recent:
    """The flows that were used lately. What is used moves to the young half; when that is full, it
    becomes the old half, and what was old is forgotten. A flow in use is found as fast as in a
    dict."""

    def __init__(self) -> None:
        self.young: dict[Hashable, Flow] = {}
        self._old: dict[Hashable, Flow] = {}

    def find(self, key: Hashable) -> Flow | None:
        flow = self.young.get(key)
        if flow is None and (flow := self._old.pop(key, None)):
            self.put(key, flow)
        return flow

    def put(self, key: Hashable, flow: Flow) -> None:
        if len(self.young) >= MOST_FLOWS // 2:
            self.young, self._old = {}, self.young
        self.young[key] = flow

    def keep(self, fits: Callable[[Any], bool]) -> None:
        """Forget all others."""
        self.young = {key: flow for key, flow in self.young.items() if fits(key)}
        self._old = {key: flow for key, flow in self._old.items() if fits(key)}

    def __len__(self) -> int:
        return len(self.young) + len(self._old)


def budget(delays: Graph, path: BrokerPath, deadline_s: float) -> Budget:
    """The latency margin, split equally among the links of a path that meets the deadline."""
    expected_s = tuple(delays[a][b] for a, b in pairwise(path))
    share_s = max(0.0, deadline_s - sum(expected_s)) / len(expected_s)
    return Budget(path[-1], share_s, expected_s)


def troubles(
    key: Key, paths: Paths, best_s: float, available: float
) -> Iterator[tuple[str, float, str]]:
    """What kinds of trouble a flow is in, how bad each is, and the words to warn of it."""
    target, level, *deadlines_s = key
    if not paths:
        yield "unreachable", 0.0, f"No path to {target} is known: messages to it cannot leave."
        return
    late = [deadline_s for deadline_s in deadlines_s if deadline_s < best_s]
    if late:
        yield "late", late[-1], _late(target, late, len(late) == len(deadlines_s), best_s)
    if available < level:
        words = (
            f"Paths to {target} are less available than asked for: {len(paths)} of them work with "
            f"a probability of {available:.4f}, not {level:g}, and no more help."
        )
        yield "unavailable", level, words


def _late(target: str, deadlines_s: list[float], are_all: bool, best_s: float) -> str:
    which = "its deadline" if are_all else "its tightest deadline"
    allowed = " to ".join(
        [f"{s * 1000:g}" for s in dict.fromkeys([deadlines_s[0], deadlines_s[-1]])]
    )
    return (
        f"No path to {target} meets {which}: the best takes {best_s * 1000:.1f} ms, and "
        f"{allowed} ms are allowed. Messages go by it all the same."
    )
