"""`configured` and `full-mesh`: linked with those who are written down, or with everybody."""

from __future__ import annotations

from tidings.linking.base import Known, Wishes


class Configured:
    """The neighbours that a person has chosen, for ever."""

    def wishes(self, known: Known, now: float) -> Wishes:
        return Wishes(tuple(sorted(known.configured)))


class Everybody:
    """Everybody: as many links as there are pairs, so for small overlays."""

    def wishes(self, known: Known, now: float) -> Wishes:
        return Wishes(tuple(sorted({*known.configured, *known.members})))
