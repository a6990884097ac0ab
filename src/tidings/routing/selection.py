"""Which of the ways to a destination shall its messages take?

Harmony, section 2.3. Paths are ranked by delay; where there is a deadline, those that meet it are
the choice, as long as there are any. Of them one takes either two: a pair without a common link or
broker if there is one, and among such pairs the one that is most available; or as many as it takes
until some path exists with the probability that an application asks for.

What one measures of availability is not exact, so differences below a thousandth are none, and the
shorter paths win.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice
from math import inf

from tidings.core.paths import BrokerPath, Graph, by_rank, distance
from tidings.core.reliability import Part, any_works, disjoint
from tidings.routing.base import View

MOST_CHOICES = 100  # looked at when the first few give no disjoint pair
DIGITS = 3  # of an availability
ALIKE = 0.99  # the availability of everything, where all failures are taken to be alike

Works = Callable[[Part], float]


def candidates(
    delays: Graph, source: str, target: str, deadline_s: float, choices: int
) -> list[BrokerPath]:
    """The shortest paths, at least two of which are disjoint if any are among the first many; those
    that meet the deadline, or all if none does."""
    found: list[BrokerPath] = []
    in_time = paired = False
    for path in islice(by_rank(delays, source, target), MOST_CHOICES):
        meets = distance(delays, path) <= deadline_s
        if in_time and not meets:
            break  # and so are all that follow
        in_time = in_time or meets
        paired = paired or any(disjoint(path, other) for other in found)
        found.append(path)
        if paired and len(found) >= choices:
            break
    return found if paired else found[:choices]


def pair(ranked: Sequence[BrokerPath], works: Works) -> tuple[BrokerPath, ...]:
    """Two of the paths, shorter first; the only one there is, or none."""
    if len(ranked) < 2:
        return tuple(ranked)

    def worth(two: tuple[BrokerPath, BrokerPath]) -> tuple[bool, float]:
        return disjoint(*two), round(any_works(two, works), DIGITS)

    return max(combinations(ranked, 2), key=worth)  # of equals the first, which is the shortest


def enough(
    ranked: Sequence[BrokerPath], works: Works, level: float, most: int
) -> tuple[BrokerPath, ...]:
    """The shortest path, and then whichever helps most, until some path works with this
    probability; fewer only if no more are allowed or none helps."""
    chosen = tuple(ranked[:1])
    available = any_works(chosen, works)
    while chosen and available < level and len(chosen) < most:
        rest = [path for path in ranked if path not in chosen]
        gains = [(any_works((*chosen, path), works), -place) for place, path in enumerate(rest)]
        best, place = max(gains, default=(0.0, 0))
        if best <= available:
            break
        chosen, available = (*chosen, rest[-place]), best
    return chosen


def measured(view: View) -> Works:
    """What the monitors of all brokers say. A link's availability is seen from its near end, and so
    is that of the link and the broker beyond; the best link to a broker tells how available that
    is, and what others lack beside it is their own fault."""
    brokers: dict[str, float] = {}
    for near in view.links.values():
        for b, estimate in near.items():
            brokers[b] = max(brokers.get(b, 0.0), estimate.availability)

    def works(part: Part) -> float:
        if len(part) == 1:
            return brokers.get(next(iter(part)), 1.0)
        seen = [
            view.links[a][b].availability / brokers[b]
            for a, b in (tuple(part), tuple(part)[::-1])
            if b in view.links.get(a, {}) and brokers[b] > 0
        ]
        return min(1.0, *seen) if seen else 0.0

    return works


def alike(part: Part) -> float:
    """All links and brokers are equally available: what the paper assumes."""
    return ALIKE


def delay_of(delays: Graph, path: BrokerPath) -> float:
    """The delay of a path; inf if a link of it is gone."""
    try:
        return distance(delays, path)
    except KeyError:
        return inf
