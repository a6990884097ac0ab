"""Who dials a part of the overlay that has been cut off?

Members that cannot be reached over known links form parts, as far as their links are known. One
member of each part is enough: the least name, or the next one if that cannot be reached. A broker
without any link does so at once: that is how one joins that knows a single member. Others wait, as
reports of a link come from its ends one after the other, and a broker that has crashed is believed
to be there for a while. The first name of those who are together waits `patience_s`, the second
twice as long, and so on: every `patience_s` one more broker tries, and not all at the same time.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from tidings.core.graphs.joined import Joined, reached_from
from tidings.core.values import Value
from tidings.linking.base import Known

PARTS_AT_ONCE = 3  # that one broker dials


class Bridgeheads(Value, frozen=True):
    """Members to be linked with, one for each part that is cut off."""

    wanted: tuple[str, ...]
    again_at: float  # when there may be more


class Healing:
    """One broker's share in bringing together what belongs together."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._missed_since: dict[str, float] = {}

    def bridgeheads(self, known: Known, near: Joined, now: float) -> Bridgeheads:
        reached = reached_from(near, known.me)
        missed = [name for name in sorted(known.members) if name not in reached]
        since = self._missed_since
        self._missed_since = {name: since.get(name, now) for name in missed}
        if known.linked:
            patience_s = self._patience_s * (1 + _rank(known.me, reached))
            missed = [n for n in missed if self._missed_since[n] + patience_s <= now]
            waiting = [at + patience_s for at in self._missed_since.values()]
            again_at = min([at for at in waiting if at > now], default=inf)
        else:
            again_at = inf
        return Bridgeheads(_one_of_each_part(missed, known.refused, near), again_at)


def _rank(me: str, together: Collection[str]) -> int:
    """How many names of those who are together come before this one."""
    return sum([name < me for name in together])


def _one_of_each_part(missed: list[str], refused: Collection[str], near: Joined) -> tuple[str, ...]:
    """Of the names, which are sorted, the first of each part that can be dialled."""
    wanted: list[str] = []
    served: set[str] = set()  # all that the wanted ones reach
    for name in missed:
        if len(wanted) == PARTS_AT_ONCE:
            break
        if name not in served and name not in refused:
            wanted.append(name)
            served |= reached_from(near, name)
    return tuple(wanted)
