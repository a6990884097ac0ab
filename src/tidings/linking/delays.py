"""How far away is a member? What was measured is remembered, as long as the member is there.

The delay of a link that is up is as reported. One that was up is remembered for `remember_s`,
unless its other end has begun a new life meanwhile: that may be elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from tidings.core.values import Value
from tidings.linking.base import Known


class Measured(Value, frozen=True):
    delay_s: float  # infinite: it could not be measured
    incarnation: int
    at: float


class Delays:
    """What one broker has measured."""

    def __init__(self, remember_s: float) -> None:
        self._remember_s = remember_s
        self._measured: dict[str, Measured] = {}

    def take(self, known: Known, given_up: Iterable[str], now: float) -> None:
        """Keep up with what is known; `given_up` are members that could not be measured."""
        mine, incarnations = known.links.get(known.me, {}), known.members
        kept = {
            name: old
            for name, old in self._measured.items()
            if incarnations.get(name) == old.incarnation and now < old.at + self._remember_s
        }
        for name in given_up:
            kept[name] = Measured(inf, incarnations.get(name, 0), now)
        for name in known.linked:
            estimate = mine.get(name)
            if estimate is not None:
                kept[name] = Measured(estimate.delay_s, incarnations.get(name, 0), now)
        self._measured = kept

    def all(self) -> dict[str, float]:
        return {name: measured.delay_s for name, measured in self._measured.items()}

    def forgets_at(self) -> float:
        """When one of them will be too old."""
        oldest = min([measured.at for measured in self._measured.values()], default=inf)
        return oldest + self._remember_s
