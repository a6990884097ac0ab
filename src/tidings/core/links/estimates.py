"""What is believed about one direction of a link: a value that travels in link-state frames."""

from __future__ import annotations

from msgspec import Struct

LONGEST_S = 1e9  # no longer time is believed


class LinkEstimate(Struct, frozen=True, array_like=True, gc=False):
    """One direction of one link, as it is believed to be."""

    delay_s: float
    delivery_ratio: float = 1.0  # lately
    s_per_byte: float = 0.0  # what a link of limited rate adds for each byte of a message
    deviation_s_per_byte: float = 0.0  # of that, between messages
    availability: float = 1.0  # the part of all time in which the link and its far end work

    def is_sane(self) -> bool:
        """Can a link be like that? Others may report anything, and NaN passes as a float."""
        return (
            0 <= self.delay_s <= LONGEST_S
            and 0 <= self.s_per_byte <= LONGEST_S
            and 0 <= self.deviation_s_per_byte <= LONGEST_S
            and 0 <= self.delivery_ratio <= 1
            and 0 <= self.availability <= 1
        )


class MeterSettings(Struct, frozen=True):
    delay_weight: float = 0.25  # of a new round-trip sample
    loss_weight: float = 0.05  # of a new probe outcome: loss is rarer, so it is averaged longer
    availability_weight: float = 0.001  # of the same outcome in the long run
    delay_window_s: float = 0.0  # the shortest round trip within it is a sample of the delay
