"""What does a link weigh, where paths are compared?

A weight gives two graphs: what is compared first, and what decides between equals. By expected
delay a link weighs the time that a message of typical size needs on it; by hop count every link
weighs the same, and the delay decides between equals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidings.core.graphs.paths import Graph
from tidings.routing.base import View

TYPICAL_BYTES = 1_000  # of a message, where a path is chosen for all messages alike

Weight = Callable[[View], tuple[Graph, Graph | None]]


def expected_delay(view: View) -> tuple[Graph, Graph | None]:
    return _delays(view), None


def hop_count(view: View) -> tuple[Graph, Graph | None]:
    ones = {a: dict.fromkeys(near, 1.0) for a, near in view.links.items()}
    return ones, _delays(view)


def usable_delays(view: View, held: tuple[str, ...] = ()) -> dict[str, Mapping[str, float]]:
    """The expected delays of the links that a message can take: none of this broker's own links
    that are down, and none to brokers that have held the message."""
    graph = dict(_delays(view))
    graph[view.me] = {b: s for b, s in graph.get(view.me, {}).items() if b in view.neighbours}
    if held:
        graph = {a: {b: s for b, s in near.items() if b not in held} for a, near in graph.items()}
    return graph


def _delays(view: View) -> Graph:
    """What a message of typical size needs; where links have no rate, only the delay counts."""
    return {
        a: {b: e.delay_s + TYPICAL_BYTES * e.s_per_byte for b, e in near.items()}
        for a, near in view.links.items()
    }
