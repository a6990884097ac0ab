"""What is it worth to send a message now? (Bounded delay, Eq. 3 and 6 to 10.)

Each group of subscriptions that a message is owed to is a falling curve over the instant t at which
the message leaves (`scheduling.chances`). The expected benefit EB(t) is the sum of all curves, each
times its price, and never rises. Sent one place later a message leaves FT later, so
EB'(t) = EB(t + FT), the postponing cost is EB(t) - EB(t + FT), and Eq. 10 comes to
EB(t) - (1 - r) EB(t + FT).
"""

from __future__ import annotations

from tidings.scheduling.chances import Curve, success


def benefit(curves: tuple[Curve, ...], at: float) -> float:
    """Eq. 3: what the message is expected to earn if it leaves at that instant."""
    return sum([curve.price * success(curve, at) for curve in curves])


def worth(curves: tuple[Curve, ...], at: float, weight: float, first_s: float) -> float:
    """Eq. 10: benefit and postponing cost, weighed; `first_s` is FT."""
    if weight == 1.0:
        return benefit(curves, at)
    return benefit(curves, at) - (1.0 - weight) * benefit(curves, at + first_s)
