"""How every broker learns every link: each tells its own, the others pass it on.

A broker advertises all its links at once, under a version of its own counting; a newer version
replaces an older one, and only news travels on. Estimates are told when they changed by enough.
"""

from __future__ import annotations

from tidings.broker.frames import Links
from tidings.core.estimates import LinkEstimate
from tidings.routing.base import View

FASTEST_S_PER_BYTE = 1e-9  # 8 Gbit/s: a smaller difference is none


class LinkState:
    """The newest advertisement of each broker, and the view that follows from them."""

    def __init__(self, view: View, incarnation: int, change: float) -> None:
        self._me, self._incarnation, self._change = view.me, incarnation, change
        self._newest: dict[str, Links] = {}
        self.view = view

    def advertise(self, mine: dict[str, LinkEstimate]) -> Links | None:
        """The advertisement of these links of ours, or None if that would be no news."""
        old = self._newest.get(self._me)
        told = dict(old.links) if old else {}
        if old and told.keys() == mine.keys() and not self._changed(told, mine):
            return None
        version = old.version + 1 if old else 1
        links = tuple(sorted(mine.items()))
        self._take(Links(0, self._me, self._incarnation, version, links))
        return self._newest[self._me]

    def apply(self, heard: Links) -> bool:
        """Take over what another broker says of its links; False if it was known."""
        known = self._newest.get(heard.origin)
        if heard.origin == self._me:
            return False
        if known and (heard.incarnation, heard.version) <= (known.incarnation, known.version):
            return False
        self._take(heard)
        return True

    def all(self) -> list[Links]:
        return [self._newest[origin] for origin in sorted(self._newest)]

    def neighbours_changed(self, up: tuple[str, ...], down: tuple[str, ...]) -> None:
        """The links that are up are no longer the same."""
        self.view.neighbours, self.view.severed = up, down
        self.view.version += 1

    def serve(self) -> None:
        """Somebody subscribes here, so that messages will come."""
        if not self.view.serves:
            self.view.serves = True
            self.view.version += 1

    def _take(self, links: Links) -> None:
        self._newest[links.origin] = links
        self.view.links = {origin: dict(newest.links) for origin, newest in self._newest.items()}
        self.view.version += 1

    def _changed(self, told: dict[str, LinkEstimate], mine: dict[str, LinkEstimate]) -> bool:
        return any(_differ(old, mine[neighbour], self._change) for neighbour, old in told.items())


def _differ(old: LinkEstimate, new: LinkEstimate, change: float) -> bool:
    """By more than this part of what was told."""
    loss = 1.0 - old.delivery_ratio
    pace = max(old.s_per_byte, FASTEST_S_PER_BYTE)
    return (
        abs(new.delay_s - old.delay_s) > change * old.delay_s
        or abs(new.delivery_ratio - old.delivery_ratio) > change * loss + change * 0.1
        or abs(new.s_per_byte - old.s_per_byte) > change * pace
        or abs(new.deviation_s_per_byte - old.deviation_s_per_byte) > change * pace
    )
