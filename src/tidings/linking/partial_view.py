"""`random`: linked with some members by chance, and never too few or too many of them.

Two views, as in HyParView (Leitao and others, 2007)
-----------------------------------------------------
The active view is the links that are up. They stay as they are until one is lost; then another
member takes its place. The passive view is where that one is taken from: some members, drawn anew
at intervals. HyParView's brokers exchange parts of their views to that end; here members are known
from the reports about links, so a broker draws by itself (docs/decisions/members-from-reports.md).

Degrees
-------
Every broker wants `degree` links, and lets others open as many as `spare_links` more. A member with
room is preferred; if none has any, one that is full is asked all the same. Whoever has too many
sheds one (see `crowding`), to the neighbour that has the most, by chance among equals.
"""

from __future__ import annotations

from math import inf

from tidings.core.graphs.joined import Joined
from tidings.core.rng import Draws
from tidings.linking.base import Known, Wishes
from tidings.linking.crowding import Crowding
from tidings.linking.healing import Healing
from tidings.linking.options import LinkingOptions
from tidings.linking.surroundings import surroundings


class PartialView:
    def __init__(self, options: LinkingOptions) -> None:
        self._options, self._draws = options, Draws(options.seed)
        self._crowding = Crowding(options.degree + options.spare_links, options.patience_s)
        self._healing = Healing(options.patience_s)
        self._passive: list[str] = []  # in the order in which they are asked
        self._shuffles, self._shuffle_at = 0, -inf  # how often it was drawn, and when it is next
        self._asked: list[str] = []  # to be linked with, and not yet linked

    def wishes(self, known: Known, now: float) -> Wishes:
        near = surroundings(known)
        healing = self._healing.bridgeheads(known, near, now)
        wanted = {*known.configured, *known.linked, *healing.wanted}
        missing = self._options.degree - len(wanted)
        again_at = min(healing.again_at, self._ask(known, missing, near, wanted, now))
        sheddable = self._crowding.sheddable(known, near, known.configured, now)
        shed = self._shed(known, near, sheddable.neighbours)
        wanted.update(self._asked)
        wanted.difference_update(shed)
        return Wishes(tuple(sorted(wanted)), shed, min(again_at, sheddable.again_at))

    def _shed(self, known: Known, near: Joined, sheddable: tuple[str, ...]) -> tuple[str, ...]:
        """One of them that has the most links, so that it is left with enough."""
        most = max([len(near[name]) for name in sheddable], default=0)
        fullest = [name for name in sheddable if len(near[name]) == most]
        about = (known.me, len(known.linked))
        return tuple(self._draws.chosen(fullest, 1, "shed", *about)) if fullest else ()

    def _ask(self, known: Known, missing: int, near: Joined, wanted: set[str], now: float) -> float:
        """Keep to those who are asked already, add as many as are missing, and say when there may
        be others to ask."""
        usable = {*known.members}.difference(known.refused, wanted)
        self._asked = [name for name in self._asked if name in usable][: max(0, missing)]
        self._passive = [name for name in self._passive if name in known.members]
        missing -= len(self._asked)
        if missing <= 0 or not known.members:
            return inf
        self._draw(known, now)
        candidates = [n for n in self._passive if n in usable and n not in self._asked]
        roomy = [n for n in candidates if not self._crowding.is_full(n, near)]
        full = [n for n in candidates if self._crowding.is_full(n, near)]
        self._asked += (roomy + full)[:missing]
        if missing <= len(candidates) or len(known.members) <= len(self._passive):
            return inf
        return self._shuffle_at

    def _draw(self, known: Known, now: float) -> None:
        """The passive view: another one after every interval, and whenever it has too few."""
        size = min(self._options.passive, len(known.members))
        if now >= self._shuffle_at or len(self._passive) < size:
            self._shuffles, self._shuffle_at = (
                self._shuffles + 1,
                now + self._options.shuffle_every_s,
            )
            members, about = sorted(known.members), (known.me, self._shuffles)
            self._passive = self._draws.chosen(members, size, "passive view", *about)
