"""One neighbour, as a broker sees it: a queue, credit to send, an estimate, and what was carried.

Back-pressure is a call: a world says how many bytes the link can take (`room_bytes`), so the
scheduler's queue, never a kernel buffer, is where messages wait. A real socket takes more than a
slow link can carry soon; there the window, which follows what was measured, keeps them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from msgspec.structs import replace

from tidings.broker.control.interest_parts import Assembly
from tidings.broker.sending.budgets import LinkBudgets
from tidings.broker.sending.outbox import Outbox
from tidings.broker.settings import Settings
from tidings.core.links.estimates import LinkEstimate, MeterSettings
from tidings.core.links.meter import LinkMeter
from tidings.core.memory import Memory
from tidings.core.trace import CARRIED_KINDS, Carried
from tidings.routing.weights import TYPICAL_BYTES
from tidings.scheduling.base import Prospects

SHORTEST_TIMEOUT_S = 0.001  # without a delay and slack to wait for, nothing would be waited for
# Transmissions whose late answer is still recognised: a second of a fast link.
MOST_GIVEN_UP = 4_096
LARGE_BYTES = 10_000  # a message by which it is judged whether a rate has changed greatly


class LinkEnd:
    """The sending side of a link, and the memory of what came in over it."""

    __slots__ = (
        "_pinned",
        "_settings",
        "advertised_s",
        "advertised_s_per_byte",
        "answered_at",
        "budgets",
        "carried_bytes",
        "carried_frames",
        "carried_header_bytes",
        "delay_s",
        "doubted_at",
        "given_up",
        "heard_at",
        "known",
        "meter",
        "neighbour",
        "newest_answered",
        "outbox",
        "outgoing_s_per_byte",
        "room_bytes",
        "s_per_byte",
        "seen",
        "timeout_s",
        "times_up",
        "unacknowledged_bytes",
        "unfinished",
        "up",
        "window_bytes",
    )

    def __init__(
        self,
        neighbour: str,
        settings: Settings,
        start: LinkEstimate | None,
        prospects: Prospects,
    ) -> None:
        self.neighbour = neighbour
        self.up = False
        self.room_bytes: float = 0.0
        self.unacknowledged_bytes = 0
        self.outbox = Outbox(settings, prospects)
        self.budgets = LinkBudgets(settings.harmony.recheck_s)
        self.times_up = 0  # of all links of the broker, when this one came up
        self.seen = Memory(settings.remember_s)  # transmission ids that came in since it is up
        self.unfinished = Assembly()  # updates of which parts came in since it is up
        self.heard_at = -inf  # when the last frame came in
        # When the last answer came, and the latest transmission that was ever answered.
        self.answered_at, self.newest_answered = -inf, 0
        self.doubted_at = -inf  # when an answer was missing for the first time since then
        # When transmissions left, and their size, that nobody waits for now.
        self.given_up: dict[int, tuple[float, int]] = {}
        self.carried_frames = [0] * len(CARRIED_KINDS)
        self.carried_bytes = [0] * len(CARRIED_KINDS)
        self.carried_header_bytes = [0] * len(CARRIED_KINDS)  # of messages, repeated or not
        self._settings = settings
        self._pinned = start if settings.estimates == "pinned" else None
        self.meter = LinkMeter(meter_settings(settings), start)
        self.known = False  # whether there is an estimate
        self.delay_s = self.advertised_s = 0.0  # now, and as the overlay was last told
        # The two directions of a link need not be alike: of what comes in, the other end knows.
        self.s_per_byte = self._pinned.s_per_byte if self._pinned else 0.0
        self.outgoing_s_per_byte = self.advertised_s_per_byte = 0.0
        self.timeout_s = 0.0
        self.window_bytes = float(settings.window_bytes)
        self.remeasure()

    @property
    def estimate(self) -> LinkEstimate | None:
        return self._pinned or self.meter.estimate

    def told(self, exactly: bool) -> LinkEstimate | None:
        """The estimate as the overlay is told it. Which of two very short links is shorter is
        chance, and a path over both must not look better than one over a third. What differs by no
        more than answers vary is no news either, unless somebody wants to know it `exactly`."""
        estimate = self.estimate
        if estimate is None or self._pinned:
            return estimate
        delay_s = max(estimate.delay_s, self._settings.least_delay_s)
        advertised_s = self.advertised_s
        if advertised_s and not exactly and abs(delay_s - advertised_s) <= self.meter.doubt_s:
            delay_s = advertised_s
        return estimate if delay_s == estimate.delay_s else replace(estimate, delay_s=delay_s)

    def begin(self, times_up: int, now: float) -> None:
        """The link has come up. At its other end may be another life of the neighbour, which knows
        nothing of the numbers of the last one, and may use them again."""
        self.times_up = times_up
        self.heard_at = now
        self.seen = Memory(self._settings.remember_s)
        self.unfinished = Assembly()

    def remeasure(self) -> None:
        """Take over what the meter has learned; hot paths read plain numbers."""
        estimate = self.estimate
        self.known = estimate is not None
        self.delay_s = estimate.delay_s if estimate else 0.0
        self.outgoing_s_per_byte = estimate.s_per_byte if estimate else 0.0
        if self._pinned:
            expected_s = self._settings.ack_timer * self.delay_s + self._settings.ack_slack_s
            self.timeout_s = max(expected_s, SHORTEST_TIMEOUT_S)
        else:
            self.timeout_s = self.meter.timeout_s
            self.window_bytes = min(self._settings.window_bytes, self.meter.window_bytes)

    def takes_more(self) -> bool:
        """Is there room for one more message, at this end and under way?"""
        return self.room_bytes > 0 and self.unacknowledged_bytes < self.window_bytes

    def patience_s(self, size_bytes: int) -> float:
        """How long to wait for the answer to a frame that is put on the link now; data is among
        what is unacknowledged already."""
        if self._pinned:
            return self.timeout_s + size_bytes * self.outgoing_s_per_byte
        return self.timeout_s + self.meter.patience_s(self.unacknowledged_bytes)

    def answers_until(self) -> float:
        """Until when a frame may still be answered that is later than all that were: as long as
        earlier ones are being answered, it is on its way, as frames arrive in their order. A host
        that is busy, at either end, looks like that; a link that loses a frame, or is dead, does
        not."""
        return -inf if self._pinned else self.answered_at + self.timeout_s

    def doubted(self, now: float) -> float:
        """An answer is missing. Gives back until when the others that are under way may still be
        answered: the first is a trial, and if the host at the other end is only busy, its answer
        comes soon and tells so. On a link that stays silent nothing is waited for any longer."""
        if self._pinned or not self._settings.grace_s:
            return -inf
        if self.doubted_at <= self.answered_at:
            self.doubted_at = now
            return -inf
        return self.doubted_at + self._settings.grace_s

    def heard(self, incoming: LinkEstimate | None) -> None:
        """What the other end says about its direction of the link, if it makes sense."""
        if not self._pinned and incoming and incoming.is_sane():
            self.s_per_byte = incoming.s_per_byte

    def differs(self, least_s: float) -> bool:
        """Has the delay more than doubled or halved since it was advertised, and by more than this?
        Or the time that a large message takes?"""
        now_s, then_s = self.delay_s, self.advertised_s
        if abs(now_s - then_s) > max(least_s, min(now_s, then_s)):
            return True
        now_s = self.outgoing_s_per_byte * LARGE_BYTES
        then_s = self.advertised_s_per_byte * LARGE_BYTES
        return abs(now_s - then_s) > max(least_s, min(now_s, then_s))

    def typically_s(self) -> tuple[float, float]:
        """What a message of typical size needs: as was last advertised, and now."""
        advertised_s = self.advertised_s + TYPICAL_BYTES * self.advertised_s_per_byte
        return advertised_s, self.delay_s + TYPICAL_BYTES * self.outgoing_s_per_byte

    def advertised(self, estimate: LinkEstimate) -> None:
        """The overlay was told that this link is so."""
        self.advertised_s, self.advertised_s_per_byte = estimate.delay_s, estimate.s_per_byte

    def give_up(self, transmission: int, sent_at: float, size_bytes: int = 0) -> None:
        """Wait no longer for an answer, but know it if it comes: it tells how slow the link is."""
        self.given_up[transmission] = sent_at, size_bytes
        if len(self.given_up) > MOST_GIVEN_UP:
            del self.given_up[next(iter(self.given_up))]

    def count(self, kind: int, size_bytes: int) -> None:
        self.carried_frames[kind] += 1
        self.carried_bytes[kind] += size_bytes

    def carried(self, broker: str, now: float) -> Iterator[Carried]:
        """What was carried since the last call, by kind."""
        for kind, name in enumerate(CARRIED_KINDS):
            frames, size_bytes = self.carried_frames[kind], self.carried_bytes[kind]
            header_bytes = self.carried_header_bytes[kind]
            if frames:
                yield Carried(now, broker, self.neighbour, name, frames, size_bytes, header_bytes)
                self.carried_frames[kind] = self.carried_bytes[kind] = 0
                self.carried_header_bytes[kind] = 0


def meter_settings(settings: Settings) -> MeterSettings:
    """What a broker's settings say about measuring links."""
    return MeterSettings(
        settings.delay_weight,
        settings.loss_weight,
        settings.availability_weight,
        settings.delay_window_s,
    )
