"""What chance has a message to be in time, if it leaves now? (Bounded delay, Eq. 4, 5 and 11.)

A message is owed to groups of subscriptions, each with a deadline and a price. Where the time per
byte of every link is normal, so is the time to a destination: with mean m and deviation s, a group
whose deadline falls on the instant D is served in time with the probability

    success(t) = P(t + delay <= D) = Phi((D - m - t) / s)

if the message leaves at t and never waits on the way. So a group is a falling curve in t, given by
three numbers: the `instant` D - m at which its chances are even, the `spread_s` s, and its `price`.

Every policy may delete what has no chance; bounded delay also orders by the chances (`benefit`).
"""

from __future__ import annotations

from math import erfc, inf, nextafter, sqrt
from statistics import NormalDist

from tidings.core.parcel import Parcel
from tidings.core.values import Value
from tidings.scheduling.base import Prospects

CERTAIN = 8.5  # deviations: a chance that is nearer to 0 or 1 than 1e-17 is exactly that
_MOST_PRICE = 1e300  # larger prices would add up to infinity, and infinity less infinity is NaN
_ROOT_HALF = sqrt(0.5)
_NORMAL = NormalDist()


class Curve(Value, frozen=True):
    """The chances of one group of subscriptions, over the instant at which the message leaves."""

    instant: float
    spread_s: float
    price: float


def curves_of(parcel: Parcel, prospects: Prospects) -> tuple[Curve, ...]:
    """One curve for each group that the parcel is owed to.

    If nothing is known of the way to a destination, it is taken to need no time: the deadline alone
    counts.
    """
    curves = []
    for destination in parcel.destinations:
        way, size_bytes = prospects.outlook(parcel, destination.broker), parcel.size_bytes
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
    """When the chance has that many deviations against it. Without a spread, what leaves exactly at
    the curve's instant is still in time."""
    if curve.spread_s == 0.0:
        return nextafter(curve.instant, inf)
    return curve.instant + deviations * curve.spread_s
