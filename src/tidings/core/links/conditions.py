"""What holds for a link, as a scenario, a link model or a broker's file says it."""

from __future__ import annotations

from math import inf

from msgspec import Struct

from tidings.core.ranges import NotNegative, Positive, Ratio

ONE_AT_A_TIME = 1.0  # the room of a rate-limited link: one parcel, then wait until it has left


class Conditions(Struct, frozen=True):
    """What holds for one link, in both directions. A broker's file may state each of these."""

    delay_s: NotNegative  # at the start, and for ever if there are no steps
    loss_ratio: Ratio = 0.0
    rate_bytes_per_s: Positive = inf
    failure_probability: Ratio = 0.0  # per epoch
    failure_epoch_s: Positive = 1.0
    outages: tuple[tuple[float, float], ...] = ()  # [from, to) in seconds, sorted, disjoint
    delay_steps: tuple[tuple[NotNegative, NotNegative], ...] = ()  # (from_s, delay_s), sorted
    repeat_s: Positive = inf  # after so long the delay is that of the start, and the steps recur
    s_per_byte: NotNegative = 0.0  # mean, where the rate is drawn for each frame; 0: it is not
    deviation_s_per_byte: NotNegative = 0.0

    @property
    def limited(self) -> bool:
        """Whether data frames wait for each other."""
        return self.rate_bytes_per_s < inf or self.s_per_byte > 0.0

    @property
    def room_bytes(self) -> float:
        """What the link takes when nothing is on it."""
        return ONE_AT_A_TIME if self.limited else inf
