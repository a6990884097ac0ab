"""In which order should a broker try its neighbours, and what may it expect from that order?

The order
---------
DCRD (Eq. 1 to 3, Theorem 1): a broker reaches a destination by way of any neighbour. An attempt
with one of them succeeds with probability r after an expected delay s; otherwise the broker knows
it after f and makes the next attempt. If the i-th attempt is the first to succeed, the message has
cost f of every attempt before it and s of this one. Of two attempts a and b, one after the other, a
goes first if and only if

    s_a + f_a (1 - r_a) / r_a  <=  s_b + f_b (1 - r_b) / r_b

wherever the pair stands: exchange the two in Eq. 3, and all else cancels. So sorting by that price
minimises the expected delay. The delivery ratio does not depend on the order.

What a failure costs
--------------------
The paper charges a failed attempt as much as a successful one (f = s = d): the price becomes d / r,
which is Theorem 1. `paper_attempt` does the same; `exact_attempt` charges what a failure really
costs.

The numbers
-----------
Expected delays are those of messages that arrive, and infinite where none can. Ratios are in
[0, 1], and delays are not negative: whoever takes numbers from the wire checks that first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from operator import attrgetter
from sys import float_info

from tidings.core.values import Value


class Attempt(Value, frozen=True):
    """To reach a destination by way of one neighbour, and what to expect of that (Eq. 2)."""

    neighbour: str
    delay_s: float  # s: expected delay when the attempt succeeds
    ratio: float  # r: probability that it succeeds
    failure_s: float  # f: what a failed attempt costs before the next one starts


def over_link(
    delay_s: float, ratio: float, transmissions: int, timeout_s: float
) -> tuple[float, float]:
    """Eq. 1: expected delay and delivery ratio of up to `transmissions` over one link.

    The k-th transmission has cost k - 1 timeouts before its own delay; the paper's k times alpha is
    a timeout of one delay. To try one link m times is to make m attempts that are alike.
    """
    return expected((Attempt("", delay_s, ratio, timeout_s),) * transmissions)


def in_order(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Theorem 1: the order of least expected delay, equals by name, what cannot succeed last."""
    ordered = sorted(attempts, key=_name)
    ordered.sort(key=_price)  # sorting is stable, and floats alone compare faster than tuples
    return tuple(ordered)


_name = attrgetter("neighbour")


def _price(attempt: Attempt) -> float:
    ratio = attempt.ratio
    if ratio == 0.0:
        return inf
    price_s = attempt.delay_s
    if ratio < 1.0:  # what never fails has no failure to pay for, even an infinite one
        price_s += attempt.failure_s * (1.0 - ratio) / ratio
    return min(price_s, float_info.max)  # what may succeed comes before what cannot


def expected(attempts: Sequence[Attempt]) -> tuple[float, float]:
    """Eq. 3: expected delay and delivery ratio of attempts made in this order.

    Computed from the last attempt to the first: of the messages that an attempt and those after it
    deliver, one share is delivered by the attempt itself, the other has waited for its failure.
    Shares, unlike Eq. 3's numerator and denominator, stay accurate when ratios are tiny. A share of
    zero is left out, because the delay after an attempt that never fails may be infinite.
    """
    delay_s, delivered = inf, 0.0
    for attempt in reversed(attempts):
        ratio = attempt.ratio
        later = (1.0 - ratio) * delivered
        if ratio == 0.0:
            delay_s += attempt.failure_s
        elif later == 0.0:
            delay_s, delivered = attempt.delay_s, ratio
        else:
            delivered = ratio + later
            waited_s = attempt.failure_s + delay_s
            delay_s = ratio / delivered * attempt.delay_s + later / delivered * waited_s
    return delay_s, delivered


def paper_attempt(
    neighbour: str,
    link_delay_s: float,
    link_ratio: float,
    transmissions: int,
    onward_delay_s: float,
    onward_ratio: float,
) -> Attempt:
    """Eq. 2 with the paper's timer, where a failure costs the full expected delay (Eq. 3)."""
    there_s, taken = over_link(link_delay_s, link_ratio, transmissions, link_delay_s)
    delay_s = there_s + onward_delay_s
    return Attempt(neighbour, delay_s, taken * onward_ratio, delay_s)


def exact_attempt(
    neighbour: str,
    link_delay_s: float,
    link_ratio: float,
    transmissions: int,
    timeout_s: float,
    onward_delay_s: float,
    onward_ratio: float,
) -> Attempt:
    """Eq. 2, where a failure costs the mean of its two kinds.

    Either no transmission was acknowledged, and all timeouts have passed; or the neighbour took the
    message and sent it back, which costs the link both ways and at least the neighbour's own delay.
    """
    there_s, taken = over_link(link_delay_s, link_ratio, transmissions, timeout_s)
    lost, returned = 1.0 - taken, taken * (1.0 - onward_ratio)
    failure_s = 0.0
    if lost > 0.0:
        failure_s += lost / (lost + returned) * (transmissions * timeout_s)
    if returned > 0.0:
        failure_s += returned / (lost + returned) * (2.0 * there_s + onward_delay_s)
    return Attempt(neighbour, there_s + onward_delay_s, taken * onward_ratio, failure_s)
