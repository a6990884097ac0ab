"""`dcrd`: delay-cognizant reliable delivery, where every message finds its own way.

The search
----------
Algorithm 2 of the paper. A broker hands a message to the first neighbour on its sending list that
has not held it; if that stays silent, to the next; if none is left, back to where the message came
from, which goes on with its own list. All that this needs is in the envelope (the brokers that held
the message, in order, and the links given up), so brokers keep nothing about messages beyond what
waits for an answer. It is a depth-first search of the overlay: it ends, and it finds the
destination if working links lead there.

Where the way back itself fails, any other broker that held the message may go on with it. No copy
crosses a link twice in the same direction.

What it leaves out
------------------
With `search = "pruned"` a message that has met a failure leaves out what cannot lead to its
destination any more (`known_ways`), and ends where nothing is left; the paper's search walks back
through every dead end to where it began.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

from tidings.core.contract import Destination
from tidings.core.parcel import Parcel
from tidings.core.trace import Reason
from tidings.routing.base import Route, View, by_next_hop
from tidings.routing.dcrd.known_ways import KnownWays
from tidings.routing.dcrd.sending_lists import SendingLists
from tidings.routing.options import Options


class Dcrd:
    """One broker's part in finding the way."""

    def __init__(self, options: Options) -> None:
        self._lists = SendingLists(options)
        self._ways = KnownWays() if options.dcrd.search == "pruned" else None

    # ---- where next

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        next_hop = {}
        for destination in parcel.destinations:
            if neighbour := self._next(destination, parcel, view, now):
                next_hop[destination.broker] = neighbour
        route = by_next_hop(parcel.destinations, next_hop, ())
        if route.stranded and (parcel.given_up or len(parcel.path) > 1):
            return Route(route.hops, route.stranded, Reason.EXHAUSTED)
        return route

    def reroute(self, parcel: Parcel, failed: str, view: View, now: float) -> Route:
        return self.route(parcel, view, now)  # the parcel says which links were given up

    def _next(self, destination: Destination, parcel: Parcel, view: View, now: float) -> str | None:
        """The first on the list who has not held the message; those who are in time go first."""
        me, path, given_up = view.me, parcel.path, parcel.given_up
        deadline_s = destination.groups[0].deadline_s if destination.groups else inf
        target = self._lists.target(destination.broker, path[0], deadline_s)
        left_s, late = deadline_s - (now - parcel.born_at), None
        ahead = None
        if self._ways is not None and (given_up or me in path[:-1]):  # it searches
            ahead = self._ways.prospect(destination.broker, parcel, view)
        for neighbour, delay_s in self._lists.choices(target, view):
            if neighbour in path or (given_up and (me, neighbour) in given_up):
                continue
            if ahead is not None and neighbour not in ahead.onward:
                continue
            if delay_s < left_s:
                return neighbour
            late = late or neighbour
        if late is None and (ahead is None or ahead.any_way):
            return self._back(parcel, view)
        return late

    def _back(self, parcel: Parcel, view: View) -> str | None:
        """Whoever this broker has the message from; if that fails, another that held it."""
        path, me = parcel.path, view.me
        first = path.index(me)
        if first == 0:
            return None  # it began here, and all ways were tried
        crossed = {b for a, b in pairwise(path) if a == me}
        crossed.update(b for a, b in parcel.given_up if a == me)
        for broker in (path[first - 1], *reversed(path)):
            if broker != me and broker not in crossed and broker in view.neighbours:
                return broker
        return None

    # ---- what brokers tell each other

    @property
    def has_news(self) -> bool:
        return self._lists.has_news

    def news(self, view: View) -> bytes | None:
        return self._lists.news(view)

    def introduction(self, view: View) -> bytes | None:
        return self._lists.introduction(view)

    def hear(self, neighbour: str, news: bytes, serial: int, view: View) -> None:
        self._lists.hear(neighbour, news, serial)
