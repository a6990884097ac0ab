"""What is it worth to send a message now? (Bounded delay, Eq. 3 to 11.)

A message is owed to groups of subscriptions, each with a deadline and a price. Where the time per
byte of every link is normal, so is the time to a destination: with mean m and deviation s, a group
whose deadline falls on the instant D is served in time with the probability

    success(t) = P(t + delay <= D) = Phi((D - m - t) / s)

if the message leaves at t and nobody makes it wait on the way. So a group is a falling curve in t,
given by three numbers: the `instant` D - m at which its chances are even, the `spread_s` s, and its
`price`. The expected benefit EB(t) is the sum of all curves, and never rises. Sent one place later
a message leaves FT later, so EB'(t) = EB(t + FT), the postponing cost is EB(t) - EB(t + FT), and
Eq. 10 comes to EB(t) - (1 - r) EB(t + FT).
"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, inf, nextafter, sqrt
from statistics import NormalDist

from msgspec import Struct

from tidings.core.links.outlook import Outlook
from tidings.core.message import Parcel

CERTAIN = 8.5  # deviations: a chance that is nearer to 0 or 1 than 1e-17 is exactly that
_MOST_PRICE = 1e300  # more would sum up to infinity, and infinity less infinity is no number
_ROOT_HALF = sqrt(0.5)
_NORMAL = NormalDist()


class Curve(Struct, frozen=True, gc=False):
    """The chances of one group of subscriptions, over the instant at which the message leaves."""

    instant: float
    spread_s: float
    price: float


def curves_of(parcel: Parcel, outlook_of: Callable[[str], Outlook | None]) -> tuple[Curve, ...]:
    """One curve for each group that the parcel is owed to.

    To a destination of which nothing is known, the way is taken to be short and sure: the deadline
    alone counts.
    """
    curves = []
    for destination in parcel.destinations:
        way, size_bytes = outlook_of(destination.broker), parcel.size_bytes
        needs_s = way.expected_s(size_bytes) if way else 0.0
        spread_s = way.spread_s(size_bytes) if way else 0.0
        for group in destination.groups:
            instant = parcel.born_at + group.deadline_s - needs_s
            curves.append(Curve(instant, spread_s, min(group.price, _MOST_PRICE)))
    return tuple(curves)


def chance(left_s: float, spread_s: float) -> float:
    """Eq. 5, for what has so much more time than it needs on average."""
    reach_s = CERTAIN * spread_s
    if left_s >= reach_s:
        return 1.0
    if left_s <= -reach_s:
        return 0.0
    return 0.5 * erfc(-left_s / spread_s * _ROOT_HALF)


def success(curve: Curve, at: float) -> float:
    """Eq. 5: the probability that the group is served in time by what leaves at that instant."""
    return chance(curve.instant - at, curve.spread_s)


def benefit(curves: tuple[Curve, ...], at: float) -> float:
    """Eq. 3: what the message is expected to earn if it leaves at that instant."""
    return sum([curve.price * success(curve, at) for curve in curves])


def worth(curves: tuple[Curve, ...], at: float, weight: float, first_s: float) -> float:
    """Eq. 10: benefit and postponing cost, weighed; `first_s` is FT."""
    if weight == 1.0:
        return benefit(curves, at)
    return benefit(curves, at) - (1.0 - weight) * benefit(curves, at + first_s)


def must_arrive(parcel: Parcel) -> bool:
    """Is it wanted however late, so that it is never deleted for its chances?"""
    return parcel.durable or parcel.expires_at == inf


def doomed_from(curves: tuple[Curve, ...], unlikely: float) -> float:
    """Eq. 11: the first instant from which on no group has a chance above `unlikely`."""
    if not curves:
        return inf  # nothing is known of whom it is for
    if unlikely >= 1.0:
        return -inf
    deviations = min(CERTAIN, -_NORMAL.inv_cdf(unlikely)) if unlikely > 0.0 else CERTAIN
    return max([_falls_below(curve, deviations) for curve in curves])


def _falls_below(curve: Curve, deviations: float) -> float:
    """When the chance has that many deviations against it; a sure thing is still in time at the
    very instant of its deadline."""
    if curve.spread_s == 0.0:
        return nextafter(curve.instant, inf)
    return curve.instant + deviations * curve.spread_s
