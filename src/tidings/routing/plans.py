"""How does a copy leave that carries its whole path?

Some strategies choose whole paths at the source and put them into the envelope: its plan. A plan
from the wire may be anything, so a path that does not go on from here, or goes on over a link that
is down, counts as no path.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.core.contract import Destination
from tidings.core.graphs.paths import BrokerPath
from tidings.routing.base import Hop, Route, View, by_next_hop


def planned(
    owed: tuple[Destination, ...],
    paths: Mapping[str, BrokerPath],
    view: View,
    avoid: tuple[str, ...],
) -> Route:
    """One copy per next hop; each carries the paths of its own destinations. No copy goes to a
    broker in `avoid`."""
    route = by_next_hop(owed, _next_hops(paths, view), avoid)
    hops = [
        Hop(hop.neighbour, hop.destinations, tuple([paths[d.broker] for d in hop.destinations]))
        for hop in route.hops
    ]
    return Route(tuple(hops), route.stranded)


def by_target(plan: tuple[BrokerPath, ...]) -> dict[str, BrokerPath]:
    """The paths of a plan by their last broker; an empty path leads nowhere."""
    return {path[-1]: path for path in plan if path}


def next_on(path: BrokerPath, view: View) -> str | None:
    """The broker after this one on a path; None if there is none, or its link is down."""
    me = view.me
    if me not in path[:-1]:
        return None
    onward = path[path.index(me) + 1]
    return onward if onward in view.neighbours else None


def _next_hops(paths: Mapping[str, BrokerPath], view: View) -> dict[str, str]:
    """The next hop of each path that has one."""
    return {
        target: onward
        for target, path in paths.items()
        if (onward := next_on(path, view)) is not None
    }
