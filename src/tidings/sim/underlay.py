"""What would a link between any two brokers be like, where brokers choose their links themselves?

The topology is then the network underneath: a link between two brokers takes the shortest path over
it, and where the topology has that link, it is that link.
"""

from __future__ import annotations

from tidings.core.graphs.paths import shortest_from
from tidings.core.links.conditions import Conditions
from tidings.core.links.estimates import LinkEstimate
from tidings.core.topology import Link
from tidings.sim.network import condition, estimate
from tidings.sim.setup import Setup


class Underlay:
    """The links that can be, made when they are first asked for."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._overlay = setup, setup.overlay
        self._order = {broker: place for place, broker in enumerate(setup.overlay.brokers)}
        self._links = {(link.a, link.b): link for link in setup.overlay.links}
        self._delays: dict[str, dict[str, float]] = {}  # of shortest paths, by where they begin

    def conditions(self, a: str, b: str) -> Conditions:
        setup = self._setup
        return condition(setup.scenario, setup.courses, setup.outages, self._link(a, b))

    def estimate(self, a: str, b: str) -> LinkEstimate | None:
        """What the broker `a` is told of its link to `b`."""
        setup = self._setup
        return estimate(setup.scenario, setup.courses, a, b, self._link(a, b).delay_s)

    def contacts(self, broker: str) -> list[str]:
        """The members that a broker knows before it has heard of any: earlier ones, where there
        are some."""
        place, count = self._order[broker], self._setup.scenario.dynamics.contacts
        brokers = self._overlay.brokers
        if place == 0:
            return list(brokers[1 : 1 + count])
        return self._setup.scenario.draws().chosen(brokers[:place], count, "contacts", broker)

    def _link(self, a: str, b: str) -> Link:
        ends = (a, b) if self._order[a] < self._order[b] else (b, a)
        link = self._links.get(ends)
        if link is None:
            first, second = ends
            if first not in self._delays:
                self._delays[first] = dict(shortest_from(self._overlay.delays, first).distance)
            link = self._links[ends] = Link(first, second, self._delays[first][second])
        return link
