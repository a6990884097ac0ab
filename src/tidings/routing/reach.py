"""Who can be reached, and how far is it, by the links alone?"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.core.graphs.paths import shortest_from
from tidings.routing.base import View


def reachable(view: View) -> frozenset[str]:
    """All brokers that some chain of links leads to."""
    reached = set(view.neighbours)
    border = list(reached)
    while border:
        for broker in view.links.get(border.pop(), {}):
            if broker not in reached:
                reached.add(broker)
                border.append(broker)
    return frozenset(reached)


def distances_to(destination: str, view: View) -> Mapping[str, float]:
    """The least delay from each broker to the destination, in seconds."""
    backwards: dict[str, dict[str, float]] = {}
    for a, near in view.links.items():
        for b, estimate in near.items():
            backwards.setdefault(b, {})[a] = estimate.delay_s
    return shortest_from(backwards, destination).distance


def distances_from(source: str, view: View) -> Mapping[str, float]:
    """The least delay from the source to each broker, in seconds."""
    delays = {a: {b: e.delay_s for b, e in near.items()} for a, near in view.links.items()}
    return shortest_from(delays, source).distance
