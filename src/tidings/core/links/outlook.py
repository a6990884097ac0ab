"""What lies between a broker and a destination: the sum of the links on the way.

The bounded-delay paper's subscription table (section 4.2) keeps, per subscription, the number of
brokers to go and the mean and variance of the path's time per byte. Links are independent, so means
and variances add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

from tidings.core.links.estimates import LinkEstimate
from tidings.core.values import Value


class Outlook(Value, frozen=True):
    """The rest of the way to a destination."""

    brokers: int  # to go, the destination among them
    delay_s: float  # whatever the size, processing included
    s_per_byte: float
    variance: float = 0.0  # of the time per byte, in s² per byte²

    def expected_s(self, size_bytes: int) -> float:
        """How long a message of this size needs, if nobody makes it wait."""
        return self.delay_s + size_bytes * self.s_per_byte

    def spread_s(self, size_bytes: int) -> float:
        """The standard deviation of that: the rate is drawn once per message and link."""
        return size_bytes * sqrt(self.variance)


def outlook(links: Iterable[LinkEstimate]) -> Outlook:
    """What the links of a path come to."""
    brokers, delay_s, s_per_byte, variance = 0, 0.0, 0.0, 0.0
    for link in links:
        brokers += 1
        delay_s += link.delay_s
        s_per_byte += link.s_per_byte
        variance += link.deviation_s_per_byte**2
    return Outlook(brokers, delay_s, s_per_byte, variance)
