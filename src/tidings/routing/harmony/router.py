"""`best-path`, `qos-path` and `qos-multipath`: paths chosen at the source that follow the network.

The three strategies
--------------------
Harmony, section 2. The publisher's broker knows every link (from the monitors of all brokers) and
gives each message its whole path. It looks for a better one at a steady pace and takes it only if
it is better by a good part, so that paths do not flap; a path with a dead link is left at once.

`qos-path` also divides what a deadline leaves beyond the path's delay among its links (`Budget`).
Brokers on the way watch these budgets as messages and probes pass, and report at once when a link
exceeds one (`broker.sending.budgets`): the news of its delay reaches the source, which sees that
the budget it gave is exceeded, and chooses anew. `qos-multipath` sends each message by several
paths (`selection`): two, or as many as the contract's availability needs.

With `reroute` on
-----------------
A broker that gets no answer, or finds the next link of the plan down, sends the message by the
shortest path it knows over brokers that have not held it; if there is none, back to the broker it
first got the message from, and on from there. That is a depth-first search, like `dcrd`'s: it never
crosses a link twice in the same direction, and finds the destination if working links lead there.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tidings.core.contract import Destination
from tidings.core.graphs.paths import BrokerPath, Graph, shortest_from
from tidings.core.message import Budget
from tidings.core.parcel import Parcel
from tidings.core.trace import Reason
from tidings.routing.base import Hop, Route, View
from tidings.routing.harmony.flow import Flow
from tidings.routing.harmony.flows import Flows
from tidings.routing.options import Options
from tidings.routing.plans import by_target, planned
from tidings.routing.weights import usable_delays


class Harmony:
    """The source of flows, and a stop on the way of those of others."""

    def __init__(self, options: Options, qos: bool, multipath: bool) -> None:
        self._reroutes = options.harmony.reroute
        self.redundant = multipath and not self._reroutes
        self._flows = Flows(options.harmony, qos, multipath)

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        if len(parcel.path) == 1 and not parcel.plan:
            return self._depart(parcel, view, now)
        paths = by_target(parcel.plan)
        route = planned(parcel.destinations, paths, view, _given_to(parcel, view.me))
        hops = tuple(
            [Hop(hop.neighbour, hop.destinations, hop.plan, parcel.budgets) for hop in route.hops]
        )
        if not route.stranded or not self._reroutes:
            return Route(hops, route.stranded)
        around = self._around(parcel, route.stranded, view)
        return Route((*hops, *around.hops), around.stranded, around.reason)

    def reroute(self, parcel: Parcel, failed: str, view: View, now: float) -> Route:
        if not self._reroutes:
            return Route((), parcel.destinations)
        return self._around(parcel, parcel.destinations, view)

    def _depart(self, parcel: Parcel, view: View, now: float) -> Route:
        """One copy by the first path to each destination, then those by the second, and so on."""
        flows = {d.broker: self._flows.get(d, view, now) for d in parcel.destinations}
        stranded = [d for d in parcel.destinations if not flows[d.broker].paths]
        hops: list[Hop] = []
        copies = max([len(flow.paths) for flow in flows.values()], default=0)
        if parcel.restarts:
            copies = min(copies, 1)  # each copy that waited would become several, again and again
        for copy in range(copies):
            owed = tuple([d for d in parcel.destinations if len(flows[d.broker].paths) > copy])
            paths = {d.broker: flows[d.broker].paths[copy] for d in owed}
            route = planned(owed, paths, view, ())
            hops += [_budgeted(hop, flows, copy) for hop in route.hops]
            if copy == 0:
                stranded += route.stranded  # flows use links that are up, so there should be none
        warning = " ".join(filter(None, [flow.take_warning() for flow in flows.values()]))
        return Route(tuple(hops), tuple(stranded), warning=warning)

    def _around(self, parcel: Parcel, owed: tuple[Destination, ...], view: View) -> Route:
        """By the shortest way to where this message has not been."""
        route = planned(owed, _ways_around(parcel, owed, view), view, ())
        return Route(route.hops, route.stranded, Reason.EXHAUSTED if route.stranded else "")


def _ways_around(
    parcel: Parcel, owed: tuple[Destination, ...], view: View
) -> dict[str, BrokerPath]:
    """Paths over brokers that have not held the message: from here, else from the broker it came
    from, and so on. Where the way back is cut, over any links that it has not crossed."""
    anywhere, beyond = _untried(parcel, view), _untried(parcel, view, parcel.path)
    back = _way_back(parcel.path)
    ways: dict[str, BrokerPath] = {}
    for step, broker in enumerate(back):
        if step and broker not in anywhere.get(back[step - 1], ()):
            break
        for target, path in shortest_from(beyond, broker).paths.items():
            ways.setdefault(target, (*back[:step], *path))
        if all(destination.broker in ways for destination in owed):
            return ways
    return {**shortest_from(anywhere, view.me).paths, **ways}


def _untried(parcel: Parcel, view: View, held: tuple[str, ...] = ()) -> Graph:
    """The links that this message has not crossed in this direction, and that were not given up in
    either."""
    tried = {*pairwise(parcel.path), *parcel.given_up}
    tried.update((b, a) for a, b in parcel.given_up)
    return {
        a: {b: delay_s for b, delay_s in near.items() if (a, b) not in tried}
        for a, near in usable_delays(view, held).items()
    }


def _way_back(path: tuple[str, ...]) -> BrokerPath:
    """From the broker that holds a message back to the source, by whom it first came from."""
    came_from: dict[str, str] = {}
    for before, broker in pairwise(path):
        if broker != path[0]:
            came_from.setdefault(broker, before)
    back = [path[-1]]
    while back[-1] in came_from:
        back.append(came_from[back[-1]])
    return tuple(back)


def _budgeted(hop: Hop, flows: Mapping[str, Flow], copy: int) -> Hop:
    """The copy with the budgets of its paths."""
    budgets: list[Budget] = []
    for destination in hop.destinations:
        flow = flows[destination.broker]
        if flow.budgets:
            budgets.append(flow.budgets[copy])
    return Hop(hop.neighbour, hop.destinations, hop.plan, tuple(budgets)) if budgets else hop


def _given_to(parcel: Parcel, me: str) -> tuple[str, ...]:
    """The brokers to which this one has sent this very copy before."""
    return tuple([b for a, b in pairwise(parcel.path) if a == me])
