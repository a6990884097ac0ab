"""What is believed about a link, and how samples change the belief.

A `LinkEstimate` is a value that travels in link-state frames; a `LinkMeter` gathers samples for one
of a broker's own links. Delay is an exponentially weighted mean (Harmony: weight 0.25 on the new
sample); the retransmission timeout is RFC 6298's, with a floor of 10 ms instead of its 1 s, because
overlay links are watched all the time and a deadline may be shorter than a second.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

RTO_FLOOR_S = 0.010
RTO_CEILING_S = 60.0  # RFC 6298, section 2.5
FIRST_RTO_S = 1.0  # RFC 6298, section 2.1: before any sample


class LinkEstimate(Struct, frozen=True, array_like=True, gc=False):
    """One direction of one link, as it is believed to be."""

    delay_s: Annotated[float, Meta(ge=0, le=1e9)]
    delivery_ratio: Annotated[float, Meta(ge=0, le=1)] = 1.0
    s_per_byte: Annotated[float, Meta(ge=0, le=1e9)] = (
        0.0  # what a link of limited rate adds for each byte of a message
    )


class MeterSettings(Struct, frozen=True):
    delay_weight: float = 0.25  # of a new round-trip sample
    loss_weight: float = 0.05  # of a new probe outcome: loss is rarer, so it is averaged longer


class LinkMeter:
    """Samples of one link turned into an estimate and a retransmission timeout."""

    def __init__(self, settings: MeterSettings, start: LinkEstimate | None) -> None:
        self._settings = settings
        self._delay_s = start.delay_s if start else None
        self._delivery_ratio = start.delivery_ratio if start else 1.0
        self._round_trip_s: float | None = None
        self._deviation_s = 0.0

    @property
    def estimate(self) -> LinkEstimate | None:
        """None as long as nothing is known."""
        if self._delay_s is None:
            return None
        return LinkEstimate(self._delay_s, self._delivery_ratio)

    @property
    def timeout_s(self) -> float:
        """How long to wait for an answer before it counts as missing."""
        if self._round_trip_s is None:
            return FIRST_RTO_S if self._delay_s is None else 3 * self._delay_s + RTO_FLOOR_S
        spread_s = max(RTO_FLOOR_S, 4 * self._deviation_s)
        return min(self._round_trip_s + spread_s, RTO_CEILING_S)

    def answered(self, round_trip_s: float) -> None:
        """A probe or an acknowledgement came back after this long."""
        weight, one_way_s = self._settings.delay_weight, round_trip_s / 2
        old_s = one_way_s if self._delay_s is None else self._delay_s
        self._delay_s = old_s + weight * (one_way_s - old_s)
        self._smooth(round_trip_s)

    def _smooth(self, round_trip_s: float) -> None:
        """RFC 6298, section 2.2 and 2.3."""
        if self._round_trip_s is None:
            self._round_trip_s, self._deviation_s = round_trip_s, round_trip_s / 2
            return
        error_s = abs(self._round_trip_s - round_trip_s)
        self._deviation_s += (error_s - self._deviation_s) / 4
        self._round_trip_s += (round_trip_s - self._round_trip_s) / 8

    def probed(self, answered: bool) -> None:
        """Whether one probe was answered: the sample of the delivery ratio."""
        outcome = 1.0 if answered else 0.0
        self._delivery_ratio += self._settings.loss_weight * (outcome - self._delivery_ratio)
