"""`direct`: every destination by its own link, or not at all (Harmony's DP)."""

from __future__ import annotations

from tidings.core.parcel import Parcel
from tidings.routing.base import NeverReroutes, Route, View, by_next_hop


class Direct(NeverReroutes):
    """No overlay path is ever longer than one link."""

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        itself = {neighbour: neighbour for neighbour in view.neighbours}
        return by_next_hop(parcel.destinations, itself, parcel.path)
