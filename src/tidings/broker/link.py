"""One neighbour, as a broker sees it: a queue, credit to send, an estimate, and what was carried.

Back-pressure is a call: a world says how many bytes the link can take (`room_bytes`), so the
scheduler's queue, never a kernel buffer, is where messages wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.broker.settings import Settings
from tidings.core.estimates import LinkEstimate, LinkMeter, MeterSettings
from tidings.core.memory import Memory
from tidings.core.trace import Carried
from tidings.scheduling import POLICIES
from tidings.scheduling.base import Queue

SHORTEST_TIMEOUT_S = 0.001  # without a delay and slack to wait for, nothing would be waited for
MOST_GIVEN_UP = (
    4_096  # transmissions whose late answer is still recognised: a second of a fast link
)

KINDS = ("data", "repeat", "ack", "probe", "control", "gossip", "discarded")
DATA, REPEAT, ACK, PROBE, CONTROL, GOSSIP, DISCARDED = range(len(KINDS))


class Link:
    """The sending side of a link, and the memory of what came in over it."""

    __slots__ = (
        "_pinned",
        "_settings",
        "carried_bytes",
        "carried_frames",
        "delay_s",
        "given_up",
        "known",
        "meter",
        "neighbour",
        "queue",
        "queued_bytes",
        "room_bytes",
        "s_per_byte",
        "seen",
        "timeout_s",
        "told_s",
        "unacknowledged_bytes",
        "up",
    )

    def __init__(self, neighbour: str, settings: Settings, start: LinkEstimate | None) -> None:
        self.neighbour = neighbour
        self.up = False
        self.room_bytes: float = 0.0
        self.unacknowledged_bytes = 0
        self.queue: Queue = POLICIES[settings.scheduling]()
        self.queued_bytes = 0
        self.seen = Memory(settings.remember_s)  # transmission ids that came in
        self.given_up: dict[int, float] = {}  # when transmissions left that nobody waits for now
        self.carried_frames = [0] * len(KINDS)
        self.carried_bytes = [0] * len(KINDS)
        self._settings = settings
        self._pinned = start if settings.estimates == "pinned" else None
        weights = MeterSettings(settings.delay_weight, settings.loss_weight)
        self.meter = LinkMeter(weights, start)
        self.known = False  # whether there is an estimate
        self.delay_s = self.told_s = 0.0  # now, and as the overlay was last told
        self.s_per_byte = 0.0
        self.timeout_s = 0.0
        self.remeasure()

    @property
    def estimate(self) -> LinkEstimate | None:
        return self._pinned or self.meter.estimate

    def remeasure(self) -> None:
        """Take over what the meter has learned; hot paths read plain numbers."""
        estimate = self.estimate
        self.known = estimate is not None
        self.delay_s = estimate.delay_s if estimate else 0.0
        self.s_per_byte = estimate.s_per_byte if estimate else 0.0
        if self._pinned:
            expected_s = self._settings.ack_timer * self.delay_s + self._settings.ack_slack_s
            self.timeout_s = max(expected_s, SHORTEST_TIMEOUT_S)
        else:
            self.timeout_s = self.meter.timeout_s

    def differs(self, least_s: float) -> bool:
        """Has the delay more than doubled or halved since it was told, and by more than this?"""
        delay_s, told_s = self.delay_s, self.told_s
        return abs(delay_s - told_s) > max(least_s, min(delay_s, told_s))

    def full(self) -> bool:
        """Does the queue take no more?"""
        return (
            self.queued_bytes >= self._settings.queue_bytes
            or len(self.queue) >= self._settings.queue_parcels
        )

    def give_up(self, transmission: int, sent_at: float) -> None:
        """Wait no longer for an answer, but know it if it comes: it tells how slow the link is."""
        self.given_up[transmission] = sent_at
        if len(self.given_up) > MOST_GIVEN_UP:
            del self.given_up[next(iter(self.given_up))]

    def count(self, kind: int, size_bytes: int) -> None:
        self.carried_frames[kind] += 1
        self.carried_bytes[kind] += size_bytes

    def carried(self, broker: str, now: float) -> Iterator[Carried]:
        """What was carried since the last call, by kind."""
        for kind, name in enumerate(KINDS):
            frames, size_bytes = self.carried_frames[kind], self.carried_bytes[kind]
            if frames:
                yield Carried(now, broker, self.neighbour, name, frames, size_bytes)
                self.carried_frames[kind] = self.carried_bytes[kind] = 0
