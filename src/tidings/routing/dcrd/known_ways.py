"""Where may a message that has met a failure still find its destination?

The paper's search tries every neighbour before it goes back. Where links are few that is a walk
through all dead ends: a message whose destination is cut off visits every broker it can reach. But
brokers know the links of the whole overlay, and the envelope says which of them have failed for
this message. So a neighbour is tried only if known links lead on from it, past brokers that have
held the message and links that were given up; and where no links are left at all, nothing more is
tried. What is left out could not have succeeded: a message still arrives if working links lead to
its destination.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from tidings.core.cache import BoundedCache
from tidings.core.parcel import Parcel
from tidings.core.values import Value
from tidings.routing.base import View

REMEMBERED_SEARCHES = 1_000  # messages that follow each other meet the same failures

Crossing = tuple[str, str]  # from one broker to another
_Search = tuple[str, tuple[str, ...], tuple[Crossing, ...]]  # destination, path, links given up


class Prospect(Value, frozen=True):
    """What is left to try for one destination, from the broker that asks."""

    onward: frozenset[str]  # from these brokers there is a way past all that have held the message
    any_way: bool  # there is one from here, if only back over brokers that have held it


class KnownWays:
    """The prospects of messages at one broker, kept until the view changes."""

    def __init__(self) -> None:
        self._version = -1
        self._towards: dict[str, list[str]] = {}  # by broker: those who have a link to it
        self._kept = BoundedCache[_Search, Prospect](REMEMBERED_SEARCHES)

    def prospect(self, destination: str, parcel: Parcel, view: View) -> Prospect:
        if view.version != self._version:
            self._look(view)
        search = (destination, parcel.path, parcel.given_up)
        return self._kept.get(search) or self._kept.keep(search, self._judged(search, view.me))

    def _look(self, view: View) -> None:
        self._version, self._towards = view.version, {}
        self._kept.clear()
        for broker, near in view.links.items():
            for other in near:
                self._towards.setdefault(other, []).append(broker)

    def _judged(self, search: _Search, me: str) -> Prospect:
        destination, path, given_up = search
        onward = self._leading_to(destination, given_up, path)
        # No copy crosses a link twice in the same direction.
        spent = {*given_up, *pairwise(path)}
        return Prospect(onward, me in self._leading_to(destination, spent, ()))

    def _leading_to(
        self, destination: str, spent: Collection[Crossing], held: Collection[str]
    ) -> frozenset[str]:
        """All brokers from which links that are not spent lead there, over brokers not in `held`;
        the destination is one of them."""
        leading, border = {destination}, [destination]
        while border:
            onward = border.pop()
            for broker in self._towards.get(onward, ()):
                if broker not in leading and broker not in held and (broker, onward) not in spent:
                    leading.add(broker)
                    border.append(broker)
        return frozenset(leading)
