"""With what probability does a link or a broker work?"""

from __future__ import annotations

from collections.abc import Callable

from tidings.core.graphs.reliability import Component
from tidings.routing.base import View

ALIKE = 0.99  # the availability of everything, where all failures are taken to be alike

Works = Callable[[Component], float]


def measured(view: View) -> Works:
    """What the monitors of all brokers report.

    A monitor sees a link and the broker beyond it as one, and cannot tell which of them failed. So
    a link is taken to be as available as the worse of its two reports, and a broker as the best
    link that leads to it. Whichever failed, no component is believed to work more often than it
    does; at worst, one path more is used than needed.
    """
    brokers: dict[str, float] = {}
    for near in view.links.values():
        for b, estimate in near.items():
            brokers[b] = max(brokers.get(b, 0.0), estimate.availability)

    def works(component: Component) -> float:
        if len(component) == 1:
            return brokers.get(next(iter(component)), 1.0)
        a, b = component
        reports = [view.links[x][y] for x, y in ((a, b), (b, a)) if y in view.links.get(x, {})]
        return min([estimate.availability for estimate in reports], default=0.0)

    return works


def alike(component: Component) -> float:
    """All links and brokers are equally available: what the paper assumes."""
    return ALIKE
