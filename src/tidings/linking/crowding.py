"""Which links can be shed by a broker that has too many?

Those that are no bridges: the overlay stays together without one of them. It may not without two
that are shed at the same time by different brokers, so they take turns: the fullest of those that
have too many begins, and each next one waits for `patience_s` more. Then links are shed one by one.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from tidings.core.graphs.joined import Joined, Pair, bridges, pair
from tidings.core.values import Value
from tidings.linking.base import Known


class Sheddable(Value, frozen=True):
    """Neighbours to one of which the link is to be shed now; sorted."""

    neighbours: tuple[str, ...] = ()
    again_at: float = inf  # when it may be this broker's turn


class Crowding:
    """Watches that one broker has no more than `most` links."""

    def __init__(self, most: int, patience_s: float) -> None:
        self._most, self._patience_s = most, patience_s
        self._crowded_since = inf

    def is_full(self, name: str, near: Joined) -> bool:
        """Does somebody have as many links as may be? Another one would have to shed one."""
        return len(near.get(name, {})) >= self._most

    def sheddable(self, known: Known, near: Joined, keep: Collection[str], now: float) -> Sheddable:
        """All but those to keep, if it is this broker's turn."""
        if len(known.linked) <= self._most:
            self._crowded_since = inf
            return Sheddable()
        self._crowded_since = min(self._crowded_since, now)
        needed = bridges(near)
        spare = _spare(known.me, near, needed).difference(keep)
        if not spare:
            return Sheddable()
        turn_at = self._crowded_since + self._patience_s * self._before(known.me, near, needed)
        if now < turn_at:
            return Sheddable((), turn_at)
        return Sheddable(tuple(sorted(spare)))

    def _before(self, me: str, near: Joined, needed: set[Pair]) -> int:
        """How many brokers have too many links, can shed one, and come before this one."""
        rank, before = (-len(near[me]), me), 0
        for name, others in near.items():
            crowded = len(others) > self._most and (-len(others), name) < rank
            if crowded and _spare(name, near, needed):
                before += 1
        return before


def _spare(name: str, near: Joined, needed: set[Pair]) -> set[str]:
    """The neighbours from which nobody is cut off if their links to this broker end."""
    return {other for other in near[name] if pair(name, other) not in needed}
