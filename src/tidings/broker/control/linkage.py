"""Which links does this broker ask the world for, and which does it give up?

A linker says with whom the broker wants to be linked (`linking`). What is wanted and not there is
opened; what this broker has opened itself and wants no longer is closed, and so are links that are
too many, whoever opened them. Links to neighbours that a person has written down are the world's
own business: it keeps them, and no linker ends them.

Nothing flaps: whoever cannot be reached, or is lost again at once, is tried again after a pause
that doubles every time. A world that never answers has refused after `ANSWER_WITHIN_S`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from tidings.broker.control.link_state import LinkState
from tidings.broker.effects import Close, Effect, Open
from tidings.broker.settings import Settings
from tidings.core.values import ChangingValue, Value
from tidings.linking import LINKERS
from tidings.linking.base import Known
from tidings.routing.base import View

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
STEADY_S = 5.0  # a link that lasted for less was as good as refused
ANSWER_WITHIN_S = 15.0  # longer than any world tries


class Whereabouts(Value, frozen=True):
    """Of a broker whose links come and go."""

    seeds: tuple[str, ...] = ()  # members that it knows before it has heard of any
    address: str = ""  # where others reach it, as it tells them; see `Broker.reached_at`


class Refusal(ChangingValue):
    """A member that could not be reached."""

    times: int
    until: float  # it is not tried before


class Linkage:
    """The links of one broker that come and go by its own wish."""

    def __init__(
        self, settings: Settings, configured: Iterable[str], seeds: Iterable[str], view: View
    ) -> None:
        self._me, self._view = view.me, view
        self._configured, self._seeds = tuple(sorted(configured)), set(seeds)
        self._linker = LINKERS[settings.linking](settings.linker)
        self._idle = settings.linking == "configured"  # then there is nothing to ask for
        self._opening: dict[str, float] = {}  # until when an answer is awaited
        self._opened: set[str] = set()  # links that came up by our wish
        self._up_since: dict[str, float] = {}
        self._refusals: dict[str, Refusal] = {}
        self._look_every_s = settings.linker.look_every_s
        # As it was at the last look.
        self._looked_at_version, self._neighbours = -1, view.neighbours
        self._again_at, self._news_at = inf, -inf  # when to look again; if there is news, earlier

    def due_at(self) -> float:
        """When to look. News of others comes all the time and mostly changes nothing here, so it
        waits; what happens to this broker's own links does not."""
        view = self._view
        if self._idle:
            return inf
        if view.version == self._looked_at_version:
            return self._again_at
        if not view.neighbours or view.neighbours != self._neighbours:
            return 0.0
        return min(self._again_at, self._news_at)

    def found(self, seed: str, now: float) -> None:
        """The world has reached a member of which only the address was known, and this is its name.
        A broker that is alone would ask for it at once, so that counts as asked."""
        if self._idle or seed in self._seeds:
            return
        self._seeds.add(seed)
        self._view.version += 1
        if not self._view.neighbours:
            self._opening[seed] = now + ANSWER_WITHIN_S

    def came_up(self, neighbour: str, now: float) -> None:
        """A link is there: by our wish, or the other end's."""
        if self._idle:
            return
        self._up_since[neighbour] = now
        if self._opening.pop(neighbour, None) is not None:
            self._opened.add(neighbour)

    def went_down(self, neighbour: str, now: float) -> None:
        up_since = self._up_since.pop(neighbour, None)
        if up_since is None:
            return
        self._opened.discard(neighbour)
        if now - up_since < STEADY_S:
            self._pause(neighbour, now)
        else:
            self._refusals.pop(neighbour, None)

    def refused(self, neighbour: str, now: float) -> None:
        """The world could not open a link."""
        if self._opening.pop(neighbour, None) is not None:
            self._pause(neighbour, now)

    def _pause(self, neighbour: str, now: float) -> None:
        refusal = self._refusals.setdefault(neighbour, Refusal(0, 0.0))
        refusal.until = now + min(FIRST_PAUSE_S * 2**refusal.times, LONGEST_PAUSE_S)
        refusal.times = min(refusal.times + 1, 10)
        self._again_at = min(self._again_at, now)

    def look(self, link_state: LinkState, now: float, effects: list[Effect]) -> None:
        """Ask the linker, and ask the world for the difference."""
        if self.due_at() > now:
            return
        for neighbour in [n for n, until in self._opening.items() if until <= now]:
            self.refused(neighbour, now)  # for want of an answer
        members = self._members(link_state)
        self._forget_who_left(members)
        wishes = self._linker.wishes(self._known(members, now), now)
        self._looked_at_version, self._neighbours = self._view.version, self._view.neighbours
        self._news_at = now + self._look_every_s
        there = {*self._view.neighbours, *self._view.severed}
        for neighbour in wishes.wanted:
            refusal = self._refusals.get(neighbour)
            paused = refusal is not None and refusal.until > now
            if neighbour not in there and neighbour not in self._opening and not paused:
                self._opening[neighbour] = now + ANSWER_WITHIN_S
                effects.append(Open(neighbour, link_state.address(neighbour)))
        unwanted = self._opened - {*wishes.wanted}
        for neighbour in sorted((unwanted | {*wishes.shed}) & there):
            if neighbour not in self._configured:
                effects.append(Close(neighbour))
        pauses = [r.until for r in self._refusals.values() if r.until > now]
        self._again_at = min([wishes.again_at, *self._opening.values(), *pauses])

    def _members(self, link_state: LinkState) -> dict[str, int]:
        """The other brokers that are believed to be there; seeds until they are heard of."""
        members = dict.fromkeys(self._seeds, 0) | link_state.members()
        members.pop(self._me, None)
        return dict(sorted(members.items()))

    def _forget_who_left(self, members: dict[str, int]) -> None:
        for neighbour in [name for name in self._refusals if name not in members]:
            del self._refusals[neighbour]

    def _known(self, members: dict[str, int], now: float) -> Known:
        view = self._view
        refused = tuple(sorted([n for n, r in self._refusals.items() if r.until > now]))
        return Known(
            view.me,
            members,
            self._configured,
            view.neighbours,
            view.links,
            refused,
            view.version,
        )
