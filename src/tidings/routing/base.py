"""The question every routing strategy answers, and what it may look at."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.core.contract import Destination
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message import Budget
from tidings.core.parcel import Parcel
from tidings.core.values import Value


class Hop(Value, frozen=True):
    """A copy for one neighbour, and the destinations that the copy serves."""

    neighbour: str
    destinations: tuple[Destination, ...]
    plan: tuple[tuple[str, ...], ...] = ()  # whole paths from here on; empty: as before
    budgets: tuple[Budget, ...] = ()  # of these paths, if they have any


class Route(Value, frozen=True):
    """Where a parcel goes next; `stranded` are destinations to which no way is known."""

    hops: tuple[Hop, ...]
    stranded: tuple[Destination, ...] = ()
    reason: str = ""  # why they are stranded; empty: what the broker has seen itself
    warning: str = ""  # what a person should know, given once


class View:
    """What one broker knows of the overlay. The broker keeps it; strategies only read it."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.version = 0  # changes whenever the rest does, so that strategies can keep their tables
        self.neighbours: tuple[str, ...] = ()  # those whose link is up, sorted
        self.severed: tuple[str, ...] = ()  # those whose link is down, sorted
        self.links: Mapping[str, Mapping[str, LinkEstimate]] = {}  # from → to, all brokers
        self.serves = False  # somebody subscribes here, or has done so


class NeverReroutes:
    """The answer of all strategies that try one way only: what failed is lost."""

    def reroute(self, parcel: Parcel, failed: str, view: View, now: float) -> Route:
        return Route((), parcel.destinations)


def left_to_others(route: Route, parcel: Parcel) -> tuple[Destination, ...]:
    """Of the stranded destinations of a strategy that sends several copies, those that another copy
    is for: all of them once a copy has left its source, and there those that a hop serves."""
    if len(parcel.path) > 1 or parcel.given_up:
        return route.stranded
    return tuple([d for d in route.stranded if any(d in hop.destinations for hop in route.hops)])


def by_next_hop(
    destinations: tuple[Destination, ...], next_hop: Mapping[str, str], avoid: tuple[str, ...]
) -> Route:
    """One copy per next hop for all destinations that share it; never back to a broker to avoid."""
    # Were `len` compared itself, mypyc would make another tuple, of fixed length; but callers see
    # by identity that all are served.
    count = len(destinations)
    if count == 1:  # most parcels, once a tree has branched
        only = next_hop.get(destinations[0].broker)
        if only is None or only in avoid:
            return Route((), destinations)
        return Route((Hop(only, destinations),))
    shared: dict[str, list[Destination]] = {}
    stranded: list[Destination] = []
    for destination in destinations:
        neighbour = next_hop.get(destination.broker)
        if neighbour is None or neighbour in avoid:
            stranded.append(destination)
        elif neighbour in shared:
            shared[neighbour].append(destination)
        else:
            shared[neighbour] = [destination]
    hops = tuple([Hop(neighbour, tuple(owed)) for neighbour, owed in shared.items()])
    return Route(hops, tuple(stranded))
