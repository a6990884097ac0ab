"""Is a link within what messages allow it? Harmony's budgets, where the link is watched.

A message that was planned at its source says what was expected of each link on its path and what
margin each has (`Budget`). A broker remembers the limits of what it has sent over a link of late,
and compares them with the link's delay whenever an acknowledgement or a probe measures it. A delay
that has crossed a limit since it was last advertised is news for the source that set it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tidings.core.parcel import Parcel

MOST_LIMITS = 256  # remembered per link: they come over the wire, and memory ends


class LinkBudgets:
    """The limits that hold for one link."""

    __slots__ = ("_keep_s", "_limits")

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._limits: dict[float, float] = {}  # limit → when it was last in use

    def note(self, parcel: Parcel, me: str, now: float) -> None:
        """A planned parcel leaves over the link."""
        limits = self._limits
        for limit_s in islice(limits_of(parcel, me), MOST_LIMITS):
            limits.pop(limit_s, None)  # so that the first is always the one not used for longest
            limits[limit_s] = now
        while len(limits) > MOST_LIMITS:
            del limits[next(iter(limits))]

    def crossed(self, advertised_s: float, delay_s: float, now: float) -> bool:
        """Is there a limit that the delay exceeds, and did not when it was last advertised?"""
        if not self._limits or delay_s <= advertised_s:
            return False
        since = now - self._keep_s
        in_use = (limit_s for limit_s, used_at in self._limits.items() if used_at >= since)
        return any(advertised_s <= limit_s < delay_s for limit_s in in_use)


def limits_of(parcel: Parcel, me: str) -> Iterator[float]:
    """What the link that the parcel leaves over from here may take, for each destination."""
    paths = {path[-1]: path for path in parcel.plan if path}
    for budget in parcel.budgets:
        path = paths.get(budget.destination, ())
        if me in path[:-1]:
            step = path.index(me)
            if step < len(budget.expected_s):
                yield budget.expected_s[step] + budget.share_s
