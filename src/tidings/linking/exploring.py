"""Which links are up only to be measured?

One is opened for a member that may be near. It ends when it was up for `measure_s` and its delay is
known, when its other end is gone, full or cannot be reached, or when nothing was measured for long.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from tidings.linking.base import Known

MEASURED_WITHIN_S = 30.0  # or it is given up


class Exploring:
    """The explorations of one broker."""

    def __init__(self, measure_s: float, in_vain: int, rest_s: float) -> None:
        """After `in_vain` explorations in a row that found none who is nearer, it rests."""
        self._measure_s, self._in_vain, self._rest_s = measure_s, in_vain, rest_s
        self._begun: dict[str, float] = {}
        self._up_since: dict[str, float] = {}
        self._vain, self._rests_until = 0, -inf

    def begin(self, name: str, now: float) -> None:
        self._begun[name] = now

    def names(self) -> list[str]:
        return list(self._begun)

    def is_tired(self, now: float) -> bool:
        """Does it rest?"""
        return now < self._rests_until

    def unmeasured(self, known: Known, now: float) -> list[str]:
        """Those of which nothing was learned for so long that nothing will be."""
        mine = known.links.get(known.me, {})
        return [
            name
            for name, begun in self._begun.items()
            if name not in mine and begun + MEASURED_WITHIN_S <= now
        ]

    def end(
        self,
        known: Known,
        measured: Collection[str],
        out: Collection[str],
        chosen: Collection[str],
        now: float,
    ) -> None:
        """Go on with those that are to go on."""
        up = self._up_since
        self._up_since = {n: up.get(n, now) for n in self._begun if n in known.linked}
        for name in list(self._begun):
            if name not in known.members or name in out:
                del self._begun[name]
            elif name in measured and self._was_up_long(name, now):
                del self._begun[name]
                self._count(name in chosen, now)
        self._up_since = {n: at for n, at in self._up_since.items() if n in self._begun}

    def again_at(self, now: float) -> float:
        """When one of them may end, or the rest does."""
        ends = [at + self._measure_s for at in self._up_since.values()]
        ends += [begun + MEASURED_WITHIN_S for begun in self._begun.values()]
        ends.append(self._rests_until)
        return min([at for at in ends if at > now], default=inf)

    def _was_up_long(self, name: str, now: float) -> bool:
        """A link that is down again, or could not be measured, is not waited for."""
        up_since = self._up_since.get(name)
        return up_since is None or up_since + self._measure_s <= now

    def _count(self, found: bool, now: float) -> None:
        self._vain = 0 if found else self._vain + 1
        if self._vain >= self._in_vain:
            self._vain, self._rests_until = 0, now + self._rest_s
