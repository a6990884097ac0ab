"""`nearest`: linked with the members of least delay, and the overlay in one piece.

Which are nearest
-----------------
A delay is known of links that are or were up. Of other members two bounds are: they are no farther
than the shortest path over known links, and, if distances obey the triangle inequality, no nearer
than what is measured to somebody less the path from there. Those that may be among the nearest are
explored, a few at a time, the most promising first: a link is opened, measured, and given up if its
other end is not among the nearest. After `in_vain` of them in a row a broker leaves it at that for
a while: so a member that joins costs the overlay the same however large it is. A near member may be
missed by that, and where the inequality does not hold. A member is replaced by one that is nearer
by `improvement`, once that one's link is up.

Which links are kept
--------------------
Those to the nearest; those to whom this broker is one of the nearest, as they would be opened from
there again; and those of the least forest of all known links (`core/graphs/joined.py`), so that no
part is left alone by links that are given up at both ends of it. A broker that has too many links
sheds others of these (see `crowding`), the farthest first, and is passed over while it is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from tidings.core.graphs.joined import Joined, least_forest, number_of, pair
from tidings.linking.base import Known, Wishes
from tidings.linking.crowding import Crowding
from tidings.linking.delays import Delays
from tidings.linking.exploring import Exploring
from tidings.linking.healing import Healing
from tidings.linking.options import LinkingOptions
from tidings.linking.surroundings import spread, surroundings


class Nearest:
    def __init__(self, options: LinkingOptions) -> None:
        self._options = options
        self._delays, self._healing = Delays(options.remember_s), Healing(options.patience_s)
        self._crowding = Crowding(options.degree + options.spare_links, options.patience_s)
        self._exploring = Exploring(options.measure_s, options.in_vain, options.remember_s)
        self._chosen: list[str] = []

    def wishes(self, known: Known, now: float) -> Wishes:
        near = surroundings(known)
        healing = self._healing.bridgeheads(known, near, now)
        self._delays.take(known, self._exploring.unmeasured(known, now), now)
        delays, out = self._delays.all(), self._out(known, near)
        self._chosen = self._best(known.me, delays, {*delays}.difference(out))
        self._exploring.end(known, delays, out, self._chosen, now)
        self._explore(known, near, delays, out, now)
        wanted = {*known.configured, *healing.wanted, *self._chosen, *self._exploring.names()}
        sheddable = self._crowding.sheddable(known, near, wanted, now)
        wanted.update(self._kept(known, near, delays))
        shed = _farthest(sheddable.neighbours, near[known.me])
        wanted.difference_update(shed)
        again_at = min(healing.again_at, self._exploring.again_at(now), self._delays.forgets_at())
        return Wishes(tuple(sorted(wanted)), shed, min(again_at, sheddable.again_at))

    def _out(self, known: Known, near: Joined) -> set[str]:
        """Those that cannot be reached, or have no room for another link."""
        out = {*known.refused}
        out.update([name for name in known.members if self._crowding.is_full(name, near)])
        return out.difference(known.linked)

    # ---- which are nearest

    def _best(self, me: str, delays: Mapping[str, float], names: Iterable[str]) -> list[str]:
        """The nearest of these; who was chosen before counts as a little nearer than it is."""
        advantage = 1.0 - self._options.improvement
        chosen = {*self._chosen}
        ranked = []
        for name in names:
            delay_s = delays[name] * (advantage if name in chosen else 1.0)
            if delay_s < inf:
                ranked.append((delay_s, _tie(me, name), name))
        ranked.sort()
        return [name for _, _, name in ranked[: self._options.degree]]

    def _explore(
        self, known: Known, near: Joined, delays: Mapping[str, float], out: set[str], now: float
    ) -> None:
        """Begin to measure the most promising members, as far as there is room."""
        options, missing = self._options, self._options.degree - len(self._chosen)
        at_once = missing if self._exploring.is_tired(now) else max(options.explore, missing)
        room = at_once - len(self._exploring.names())
        known_or_out = {*delays, *out, *known.linked, *self._exploring.names()}
        unknown = [name for name in known.members if name not in known_or_out]
        if room <= 0 or not unknown:
            return
        at_most = spread(near, {known.me: 0.0}, inf)
        at_least = spread(near, {name: -s for name, s in delays.items() if s < inf}, 0.0)
        limit_s = inf
        if missing == 0:
            limit_s = max([delays[name] for name in self._chosen]) * (1.0 - options.improvement)
        promising = []
        for name in unknown:
            if name in at_most and -at_least.get(name, 0.0) < limit_s:
                promising.append((at_most[name], _tie(known.me, name), name))
        for _, _, name in sorted(promising)[:room]:
            self._exploring.begin(name, now)

    # ---- which links are kept

    def _kept(self, known: Known, near: Joined, delays: Mapping[str, float]) -> list[str]:
        """Of the links that are up, the best until better ones are up, and what others need."""
        me, forest = known.me, least_forest(near)
        best = self._best(me, delays, [name for name in known.linked if name in delays])
        needed = [n for n in known.linked if pair(me, n) in forest or self._is_near_to(n, me, near)]
        return best + needed

    def _is_near_to(self, neighbour: str, me: str, near: Joined) -> bool:
        """Is this broker one of the nearest of a neighbour, as far as its links are known?"""
        ranked = sorted([(s, _tie(neighbour, name), name) for name, s in near[neighbour].items()])
        return me in [name for _, _, name in ranked[: self._options.degree]]


def _tie(a: str, b: str) -> int:
    """Where many are equally far, each broker takes others, and not all of them the first names."""
    return number_of(a) ^ number_of(b)


def _farthest(names: tuple[str, ...], delays: Mapping[str, float]) -> tuple[str, ...]:
    """One of them, or none if there are none."""
    return (max(names, key=lambda name: (delays[name], name)),) if names else ()
