"""Which links come and go in a network that never holds still, and when?

Reconfiguration
---------------
Semi-probabilistic routing, section 4.1: every so often a link breaks, and after a while another one
appears, elsewhere. Only a link both ends of which have at least the target degree may break, and
only brokers of at most that degree get one, so degrees stay within one of the target. Otherwise the
graph is random.

Brokers that come and go
------------------------
A broker that is gone has no links. Those who lose one with it find each other after the repair
delay, two by two. One that comes takes the place in the middle of links that are there: each of
them breaks, and both its ends get a link to the newcomer. So the degrees stay as they are.

The schedule is drawn before the run from the scenario alone: every strategy meets the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tidings.core.links.intervals import Interval
from tidings.core.topology import Topology, connect
from tidings.core.topology.graph import drawn_links
from tidings.sim.scenario import Scenario

TRIES = 100  # at random, before all links or brokers are looked through


class Move(Struct, frozen=True):
    """A link between two brokers, `a` before `b` among them, appears or is gone from then on."""

    at: float
    a: str
    b: str
    up: bool


def draw_moves(
    scenario: Scenario, overlay: Topology, absences: Mapping[str, tuple[Interval, ...]]
) -> tuple[Move, ...]:
    """All moves of a run, in the order of time; `absences` say when which brokers are gone."""
    if scenario.links_itself or not scenario.dynamics.moves:
        return ()
    graph = _MovingGraph(scenario, overlay)
    end_at = scenario.run.start_s + scenario.run.seconds + scenario.run.drain_s
    break_every_s = scenario.dynamics.break_every_s
    if break_every_s < inf:
        at = scenario.run.start_s
        while at < end_at:
            graph.plan(at, graph.break_one)
            at += break_every_s
    for broker in overlay.brokers:
        for from_s, to_s in absences.get(broker, ()):
            graph.plan(from_s, graph.leave, broker)
            graph.plan(to_s, graph.come, broker)
    return graph.run(end_at)


def ever_linked(scenario: Scenario, overlay: Topology, moves: tuple[Move, ...]) -> Topology:
    """The overlay with all links that are there at some time."""
    if not moves:
        return overlay
    there = {(link.a, link.b) for link in overlay.links}
    fresh = sorted({(move.a, move.b) for move in moves if move.up} - there)
    drawn = drawn_links(fresh, scenario.dynamics.delay_ms, scenario.draws(), scenario.source)
    appearing = connect(overlay.brokers, drawn, scenario.source)
    order = {broker: place for place, broker in enumerate(overlay.brokers)}
    links = sorted(
        (*overlay.links, *appearing.links), key=lambda link: (order[link.a], order[link.b])
    )
    return replace(overlay, links=tuple(links))


class _MovingGraph:
    """The links of the moment, and what is still to happen to them."""

    def __init__(self, scenario: Scenario, overlay: Topology) -> None:
        self._repair_s = scenario.dynamics.repair_s
        self._order = {broker: place for place, broker in enumerate(overlay.brokers)}
        self._links = [(link.a, link.b) for link in overlay.links]
        self._places = {ends: place for place, ends in enumerate(self._links)}
        self._degrees = {broker: len(overlay.delays[broker]) for broker in overlay.brokers}
        mean_degree = round(2 * len(self._links) / len(overlay.brokers))
        self._degree = scenario.dynamics.degree or mean_degree
        self._stream: np.random.Generator = scenario.draws().stream("moves")
        self._plans: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._serial = 0
        self._moves: list[Move] = []

    def plan(self, at: float, step: Callable[..., None], *arguments: Any) -> None:
        self._serial += 1
        heappush(self._plans, (at, self._serial, step, arguments))

    def run(self, end_at: float) -> tuple[Move, ...]:
        while self._plans and self._plans[0][0] <= end_at:
            at, _, step, arguments = heappop(self._plans)
            step(at, *arguments)
        return tuple(self._moves)

    # ---- what happens

    def break_one(self, at: float) -> None:
        """A link breaks, and soon another one appears."""
        ends = self._drawn(self._links, self._may_break)
        if ends is not None:
            self._remove(at, ends)
            self.plan(at + self._repair_s, self._repair)

    def leave(self, at: float, broker: str) -> None:
        """A broker goes, and its links with it; those who lose one find each other."""
        lost = sorted(ends for ends in self._links if broker in ends)
        for ends in lost:
            self._remove(at, ends)
        del self._degrees[broker]
        for _ in range(len(lost) // 2):
            self.plan(at + self._repair_s, self._repair)

    def come(self, at: float, broker: str) -> None:
        """A broker comes, into the middle of links that are there."""
        self._degrees[broker] = 0
        for _ in range(self._degree // 2):
            ends = self._drawn(self._links, lambda ends: broker not in self._near(*ends))
            if ends is None:
                break
            self._remove(at, ends)
            for end in ends:
                self._add(at, end, broker)
        if not self._degrees[broker]:  # the overlay is too small to break anything
            others = sorted(self._degrees.keys() - {broker})
            for other in others[: self._degree]:
                self._add(at, other, broker)

    def _repair(self, at: float) -> None:
        """Two brokers that have room for a link get one."""
        brokers = sorted(self._degrees)
        a = self._drawn(brokers, lambda broker: self._degrees[broker] <= self._degree)
        if a is None:
            return
        b = self._drawn(
            brokers,
            lambda broker: (
                broker != a
                and self._degrees[broker] <= self._degree
                and self._ends(a, broker) not in self._places
            ),
        )
        if b is not None:
            self._add(at, a, b)

    # ---- the graph

    def _may_break(self, ends: tuple[str, str]) -> bool:
        return all(self._degrees[end] >= self._degree for end in ends)

    def _near(self, a: str, b: str) -> set[str]:
        """Both ends of a link, and those that are linked to either."""
        near = {a, b}
        for end in (a, b):
            near.update(other for other in self._degrees if self._ends(end, other) in self._places)
        return near

    def _drawn(self, items: list[Any], fits: Callable[[Any], bool]) -> Any:
        """One of the items that fit, each with the same chance; None if none does."""
        if not items:
            return None
        for _ in range(TRIES):
            item = items[int(self._stream.integers(len(items)))]
            if fits(item):
                return item
        fitting = [item for item in items if fits(item)]
        return fitting[int(self._stream.integers(len(fitting)))] if fitting else None

    def _ends(self, a: str, b: str) -> tuple[str, str]:
        return (a, b) if self._order[a] < self._order[b] else (b, a)

    def _add(self, at: float, a: str, b: str) -> None:
        ends = self._ends(a, b)
        self._places[ends] = len(self._links)
        self._links.append(ends)
        for end in ends:
            self._degrees[end] += 1
        self._moves.append(Move(at, *ends, True))

    def _remove(self, at: float, ends: tuple[str, str]) -> None:
        place, last = self._places.pop(ends), self._links.pop()
        if last != ends:
            self._links[place], self._places[last] = last, place
        for end in ends:
            self._degrees[end] -= 1
        self._moves.append(Move(at, *ends, False))
