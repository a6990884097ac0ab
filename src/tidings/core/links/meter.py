"""How do samples change what is believed about a link?

Delay and timeout
-----------------
A `LinkMeter` gathers samples for one of a broker's own links. Delay is an exponentially weighted
mean (Harmony: weight 0.25 on the new sample); the retransmission timeout is RFC 6298's, with a
floor of 10 ms instead of its 1 s, because overlay links are watched all the time and a deadline may
be shorter than a second.

A host that is busy answers late, and so does one that a burst keeps busy; a route that avoided the
link for that would only be longer. So the delay is made of the shortest round trip of the last
seconds, less what this host's own timers were late, and is in doubt by what round trips vary. The
timeout is made of every round trip, as a late answer is one to be waited for.

Rate
----
A link of limited rate needs time for every byte (`core.links.pace`). What a frame waited behind
others, and what its own bytes took, is subtracted from its round trip first: delay is what a frame
of no size would meet on the idle link. As long as the rate is unknown, round trips are taken as
they are, and a frame gets more time if more bytes are under way than were answered lately.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from tidings.core.links.estimates import LinkEstimate, MeterSettings
from tidings.core.links.pace import PaceMeter
from tidings.core.links.shortest import ShortestLately

RTO_FLOOR_S = 0.010
RTO_CEILING_S = 60.0  # RFC 6298, section 2.5
FIRST_RTO_S = 1.0  # RFC 6298, section 2.1: before any sample
CAUTIOUS_S_PER_BYTE = 16e-6  # 0.5 Mbit/s: what a link of unknown rate may be as slow as

FIRST_WINDOW_BYTES = 16_384  # RFC 6928's ten segments: before any sample of the rate
APART_S = 0.025  # a frame that comes so long after a message did not wait behind it
TOGETHER_S = 0.010  # answers that come so close together are one sample: one read brings many
ANSWER_S = 0.005  # what both ends may need to answer, beside the quiet round trip


class LinkMeter:
    """Samples of one link turned into an estimate and a retransmission timeout."""

    def __init__(self, settings: MeterSettings, start: LinkEstimate | None) -> None:
        self._settings = settings
        self._delay_s = start.delay_s if start else None
        self._delivery_ratio = start.delivery_ratio if start else 1.0
        self._availability = start.availability if start else 1.0
        self._round_trip_s: float | None = None
        self._deviation_s = 0.0
        window_s = settings.delay_window_s
        self._shortest = ShortestLately(window_s) if window_s > 0.0 else None
        self._sampled_at = -inf
        self._quiet_s: float | None = None  # the round trip, if nothing is in the way
        self._large_bytes = 0.0  # about the largest message lately
        self.pace = PaceMeter(
            start.s_per_byte if start else 0.0, start.deviation_s_per_byte if start else 0.0
        )

    @property
    def estimate(self) -> LinkEstimate | None:
        """None as long as nothing is known."""
        if self._delay_s is None:
            return None
        pace = self.pace
        return LinkEstimate(
            self._delay_s,
            self._delivery_ratio,
            pace.s_per_byte,
            pace.deviation_s_per_byte,
            self._availability,
        )

    @property
    def window_bytes(self) -> float:
        """How many bytes may be unacknowledged: twice what the link carries in a round trip. So
        the link is never idle, and messages wait in the broker's queue. The last frame may exceed
        the window, so a frame that is larger than the window travels alone."""
        s_per_byte = self.pace.likely_s_per_byte
        if s_per_byte > 0.0:
            return 2 * ((self._quiet_s or 0.0) + ANSWER_S) / s_per_byte
        return inf if self.pace.samples else FIRST_WINDOW_BYTES

    @property
    def timeout_s(self) -> float:
        """How long to wait for an answer before it counts as missing."""
        if self._round_trip_s is None:
            return FIRST_RTO_S if self._delay_s is None else 3 * self._delay_s + RTO_FLOOR_S
        spread_s = max(RTO_FLOOR_S, 4 * self._deviation_s)
        return min(self._round_trip_s + spread_s, RTO_CEILING_S)

    @property
    def doubt_s(self) -> float:
        """By how much the delay may differ for no other reason than that answers come early and
        late: as much as the timeout allows."""
        return 0.0 if self._shortest is None else 4 * self._deviation_s / 2

    def patience_s(self, unacknowledged_bytes: int) -> float:
        """What to add to the timeout for a frame that is the last of so many without an answer."""
        s_per_byte = self.pace.likely_s_per_byte
        if s_per_byte > 0.0:
            return unacknowledged_bytes * s_per_byte
        return max(0.0, unacknowledged_bytes - self._large_bytes) * CAUTIOUS_S_PER_BYTE

    def unburdened(self, round_trip_s: float, size_bytes: int, now: float) -> float:
        """The round trip of a frame, less what its bytes and those before it took."""
        since_s, s_per_byte = now - self.pace.answered_at, self.pace.likely_s_per_byte
        round_trip_s = max(0.0, round_trip_s)
        self._listen(round_trip_s, size_bytes, since_s)
        if s_per_byte == 0.0:
            return round_trip_s
        if since_s >= 0.0 and self._quiet_s is not None:
            round_trip_s = min(round_trip_s, since_s + self._quiet_s)
        return max(0.0, round_trip_s - size_bytes * s_per_byte)

    def _listen(self, round_trip_s: float, size_bytes: int, since_s: float) -> None:
        """Learn what the round trip is if nothing is in the way: from small frames that did not
        come shortly after a message, behind which they may have waited."""
        if self._quiet_s is None or round_trip_s < self._quiet_s:
            self._quiet_s = round_trip_s
        elif not size_bytes and since_s > min(round_trip_s, APART_S):
            self._quiet_s += (round_trip_s - self._quiet_s) / 2

    def carried(self, trips: Iterable[tuple[float, int, bool]], waiting: bool, now: float) -> None:
        """Frames were acknowledged together: the round trip and the size of each, 0 if it carried
        no message, and whether it was sent once. `waiting`: others wait for the link."""
        longest_s, total_bytes = -inf, 0
        for round_trip_s, size_bytes, _ in trips:
            if size_bytes:
                longest_s = max(longest_s, round_trip_s)
                total_bytes += size_bytes
                if size_bytes >= self._large_bytes:
                    self._large_bytes = float(size_bytes)
                else:
                    self._large_bytes += (size_bytes - self._large_bytes) / 8
        if total_bytes:
            most_s = longest_s - (self._quiet_s or 0.0)
            self.pace.acknowledged(total_bytes, most_s, waiting, now)

    def answered(
        self,
        round_trip_s: float,
        lag_s: float = 0.0,
        now: float = 0.0,
        shortest_s: float | None = None,
    ) -> None:
        """A probe or an acknowledgement came back after this long, as `unburdened`, while timers
        here were late by `lag_s`. Of what was answered together it is the longest round trip, and
        `shortest_s` is the shortest: what left last, and waited least for the other end to read."""
        calm_s = self._calm(round_trip_s if shortest_s is None else shortest_s, lag_s, now)
        weight, one_way_s = self._settings.delay_weight, calm_s / 2
        if self._shortest is not None:
            together = 0.0 <= now - self._sampled_at < TOGETHER_S
            if together and round_trip_s <= self.timeout_s:
                return
            self._sampled_at = now
        old_s = one_way_s if self._delay_s is None else self._delay_s
        self._delay_s = old_s + weight * (one_way_s - old_s)
        self._smooth(round_trip_s)

    def _calm(self, round_trip_s: float, lag_s: float, now: float) -> float:
        """The round trip as it would be among hosts that have nothing else to do."""
        if self._shortest is None:
            return round_trip_s
        quiet_s = round_trip_s if self._quiet_s is None else self._quiet_s
        calm_s = max(min(round_trip_s, quiet_s), round_trip_s - lag_s)
        return self._shortest.add(calm_s, now)

    def _smooth(self, round_trip_s: float) -> None:
        """RFC 6298, section 2.2 and 2.3."""
        if self._round_trip_s is None:
            self._round_trip_s, self._deviation_s = round_trip_s, round_trip_s / 2
            return
        error_s = abs(self._round_trip_s - round_trip_s)
        self._deviation_s += (error_s - self._deviation_s) / 4
        self._round_trip_s += (round_trip_s - self._round_trip_s) / 8

    def missed(self, probes: float) -> None:
        """The link was gone for so long that this many probes would have got no answer."""
        self._availability *= (1.0 - self._settings.availability_weight) ** probes

    def probed(self, answered: bool) -> None:
        """Whether one probe was answered: a sample of the delivery ratio and, as probes are sent
        at a steady pace, of the part of all time in which the link works."""
        outcome, settings = 1.0 if answered else 0.0, self._settings
        self._delivery_ratio += settings.loss_weight * (outcome - self._delivery_ratio)
        self._availability += settings.availability_weight * (outcome - self._availability)
