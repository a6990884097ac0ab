"""How often does a linker look at the overlay? No more often than is of use.

A broker hears of links all the time, and most of it changes nothing for it. So news of others waits
for `look_every_s`; what happens to its own links, or to its attempts, is looked at at once.
"""

from __future__ import annotations

from math import inf

from tidings.linking.base import Known, Linker, Wishes


class Paced:
    """A linker that asks another one."""

    def __init__(self, linker: Linker, look_every_s: float) -> None:
        self._linker, self._look_every_s = linker, look_every_s
        self._known: Known | None = None  # what it was asked about last
        self._answer, self._looked_at = Wishes(()), -inf

    def wishes(self, known: Known, now: float) -> Wishes:
        before, answer = self._known, self._answer
        if before is None or _is_urgent(before, known) or answer.again_at <= now:
            return self._look(known, now)
        if before.version == known.version != 0:
            return answer
        look_at = self._looked_at + self._look_every_s
        if look_at <= now:
            return self._look(known, now)
        return Wishes(answer.wanted, answer.shed, min(answer.again_at, look_at))

    def _look(self, known: Known, now: float) -> Wishes:
        self._answer = self._linker.wishes(known, now)
        self._known, self._looked_at = known, now
        return self._answer


def _is_urgent(before: Known, known: Known) -> bool:
    """Has something happened to this broker itself?"""
    return (
        before.linked != known.linked
        or before.refused != known.refused
        or before.configured != known.configured
        or not known.linked
    )
