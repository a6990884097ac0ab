"""Has a neighbour fallen silent? It has if it says nothing, though it is asked again and again.

Questions
---------
Whatever comes in from a neighbour shows that the link works, so a link in use is never asked. After
half of `suspect_after_s` without a frame the neighbour is asked (a probe without a number, which
counts neither for loss nor for availability), and again at short intervals. If nothing at all has
come in when the other half is over, the link is suspect: messages avoid it until something is heard
again. On an idle link one question and one answer pass in each half, as the question of one end is
a sign of life for the other.

Patience
--------
A host that is busy answers late, and must not make its links come and go. So patience is not fixed:

    patience = max(half + what was learned, the link's timeout) + how late our own timers are

What is learned are silences that ended: a neighbour that lives and was silent may be silent for
somewhat longer the next time. A silence that was much longer than patience was an outage, and
teaches nothing. What was learned fades.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from tidings.broker.frames import Probe
from tidings.broker.sending.link import LinkEnd

QUESTION = Probe(0)  # the monitor's own probes are numbered from 1
QUESTIONS = 4  # before a link may be suspect, so that a few losses do not make it so
MORE = 1.5  # times a silence that ended is waited for the next time
OUTAGE = 3.0  # times patience: such a silence was suspected with good reason
LONGEST_PATIENCE = 8.0  # halves: a neighbour that is slower than that is avoided, busy or not
FADES_IN_S = 30.0  # to a half of what was learned


class _Watched:
    """One neighbour whose frames are waited for."""

    __slots__ = ("asked", "asked_at", "learned_at", "learned_s", "link", "next_at", "suspect")

    def __init__(self, link: LinkEnd, next_at: float) -> None:
        self.link, self.next_at = link, next_at
        self.asked, self.asked_at = 0, inf  # how often since the last frame, and when first
        self.learned_s, self.learned_at = 0.0, 0.0
        self.suspect = False


class Silences:
    """Who is to be asked whether it is there, and who is suspect."""

    def __init__(self, me: str, suspect_after_s: float) -> None:
        self._me, self._half_s = me, suspect_after_s / 2
        self._watched: dict[str, _Watched] = {}

    def start(self, link: LinkEnd, now: float) -> None:
        if self._half_s < inf:
            self._watched[link.neighbour] = _Watched(link, now + self._quiet_s(link))

    def stop(self, link: LinkEnd) -> None:
        self._watched.pop(link.neighbour, None)

    def next_at(self) -> float:
        """When somebody is to be looked at."""
        return min((watched.next_at for watched in self._watched.values()), default=inf)

    def watches(self, link: LinkEnd) -> bool:
        return link.neighbour in self._watched

    def asked_once_at(self, link: LinkEnd) -> float | None:
        """When the only question left that may be answered now; None if there were several."""
        watched = self._watched[link.neighbour]
        return watched.asked_at if watched.asked == 1 else None

    def suspects(self, link: LinkEnd) -> bool:
        watched = self._watched.get(link.neighbour)
        return watched is not None and watched.suspect

    def look(self, lag_s: float, now: float) -> Iterator[tuple[LinkEnd, bool]]:
        """Neighbours to ask now, or (True) suspect from now on."""
        for watched in self._watched.values():
            if watched.next_at <= now and self._is_quiet(watched, now):
                suspect = self._is_suspect(watched, lag_s, now)
                watched.asked += 1
                yield watched.link, suspect

    def heard(self, link: LinkEnd, now: float) -> None:
        """Something has come in from a suspect."""
        watched = self._watched[link.neighbour]
        self._learn(watched, now)
        watched.suspect = False
        watched.next_at = now + self._quiet_s(link)

    def _is_quiet(self, watched: _Watched, now: float) -> bool:
        """Has nothing come in for so long that the neighbour is to be asked (again)?"""
        link = watched.link
        if watched.asked and not watched.suspect:
            if link.heard_at < watched.asked_at:
                return True
            self._learn(watched, link.heard_at)
        quiet_at = link.heard_at + self._quiet_s(link)
        if watched.suspect or now >= quiet_at:
            return True
        watched.next_at = quiet_at
        return False

    def _is_suspect(self, watched: _Watched, lag_s: float, now: float) -> bool:
        """Does a link become suspect now? If not, plan the next question."""
        watched.asked_at = min(watched.asked_at, now)
        learned_s, timeout_s = self._learned_s(watched, now), watched.link.timeout_s
        patience_s = max(self._half_s + learned_s, timeout_s) + lag_s
        becomes = (
            not watched.suspect
            and watched.asked >= QUESTIONS
            and now >= watched.asked_at + patience_s
        )
        watched.suspect |= becomes
        watched.next_at = now + self._half_s / (1 if watched.suspect else QUESTIONS)
        return becomes

    def _quiet_s(self, link: LinkEnd) -> float:
        """After how long without a frame to ask. One end leaves the first question to the other,
        whose question it may hear instead."""
        other_first = self._me > link.neighbour
        return self._half_s + (self._half_s / QUESTIONS if other_first else 0.0)

    def _learn(self, watched: _Watched, heard_at: float) -> None:
        """A silence has ended."""
        silent_s, learned_s = heard_at - watched.asked_at, self._learned_s(watched, heard_at)
        watched.asked, watched.asked_at = 0, inf
        patience_s = self._half_s + learned_s
        if patience_s < MORE * silent_s and silent_s <= OUTAGE * patience_s:
            longest_s = LONGEST_PATIENCE * self._half_s
            watched.learned_s = min(MORE * silent_s, longest_s) - self._half_s
            watched.learned_at = heard_at

    def _learned_s(self, watched: _Watched, now: float) -> float:
        if not watched.learned_s:
            return 0.0
        return float(watched.learned_s * 0.5 ** ((now - watched.learned_at) / FADES_IN_S))
