"""What the network does to a frame: the physics that both worlds share.

The simulator applies it in virtual time, the live world's emulation by holding frames back.

Outages and losses
------------------
Outages come from two sources, both keyed so that every strategy meets the same ones: failure epochs
(DCRD: a link is dark for a whole second with a given probability, drawn per link and second) and
declared or drawn outage intervals. Losses are drawn per transmission and direction; a message that
comes back and crosses a link again has a new chance (`occasion`).

Rate
----
A link of limited rate sends one data frame after the other. Its rate is fixed, or, as in bounded
delay (section 3.2), its time per byte is normal: drawn once per message and crossing, so that a
large message deviates in proportion. A draw below `LEAST_OF_MEAN` of the mean counts as that much.

Delay
-----
A delay may change in steps, as it did where it was measured. A frame takes the delay that holds
when it is put on the link, so one that leaves after a step down may overtake one that left before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from tidings.core.links.conditions import Conditions
from tidings.core.rng import Draws

LEAST_OF_MEAN = 0.01  # no frame is sent at more than a hundred times the mean pace
_BLOCK_BITS = 12  # epochs are drawn 4,096 at a time


def occasion(restarts: int, steps: int, attempt: int) -> int:
    """Which crossing this is, for one message on one link: how often it has started afresh before,
    after how many steps of its way, and at which attempt of that step."""
    return restarts << 32 | steps << 16 | attempt


class LinkWeather:
    """One direction of one link, from `a` to `b`."""

    def __init__(self, a: str, b: str, conditions: Conditions, draws: Draws) -> None:
        self.conditions = conditions
        self.delay_s = conditions.delay_s
        self._moves = bool(conditions.delay_steps)
        self._steps_at = [from_s for from_s, _ in conditions.delay_steps]
        self._delays_s = [self.delay_s, *(delay_s for _, delay_s in conditions.delay_steps)]
        self._limited, self._rate = conditions.limited, conditions.rate_bytes_per_s
        self._pace = _drawn_pace(a, b, conditions, draws)
        self._lost = draws.loss_test(conditions.loss_ratio, a, b)
        self._draws, self._ends = draws, "-".join(sorted((a, b)))
        self._failed: list[bytes] = []
        self._outage_edges = [edge for outage in conditions.outages for edge in outage]
        self._free_at = 0.0
        self._others = 0
        self._epoch_s = conditions.failure_epoch_s
        self._epoch, self._dark_epoch = -1, False
        self._fails = conditions.failure_probability > 0.0 or bool(self._outage_edges)

    def dark(self, now: float) -> bool:
        """Is the link failing at this instant?"""
        epoch = int(now / self._epoch_s)
        if epoch != self._epoch:
            self._epoch, self._dark_epoch = epoch, self._fails_in(epoch)
        if self._dark_epoch or not self._outage_edges:
            return self._dark_epoch
        return bool(bisect_right(self._outage_edges, now) & 1)

    def delay_at(self, now: float) -> float:
        """The delay of a frame that is put on the link at this instant."""
        return self._delays_s[bisect_right(self._steps_at, now % self.conditions.repeat_s)]

    def arrival(self, size_bytes: int, message_id: int, occasion: int, now: float) -> float | None:
        """When a data frame that is put on the link now reaches the other end; None: never."""
        sent_at = now
        if self._limited:
            takes_s = self._sending_s(size_bytes, message_id, occasion)
            sent_at = self._free_at = max(now, self._free_at) + takes_s
        if self._lost is not None and self._lost(message_id, occasion):
            return None
        if self._fails and self.dark(now):
            return None
        return sent_at + (self.delay_at(now) if self._moves else self.delay_s)

    def control_arrival(self, now: float) -> float | None:
        """The same for any other frame: small, and with a luck of its own."""
        self._others += 1
        if self._lost is not None and self._lost(-1, self._others):
            return None
        if self._fails and self.dark(now):
            return None
        return now + (self.delay_at(now) if self._moves else self.delay_s)

    def free_at(self) -> float:
        """When the last data frame will have left the sender (rate-limited links)."""
        return self._free_at

    def _sending_s(self, size_bytes: int, message_id: int, occasion: int) -> float:
        """How long a data frame keeps the link busy."""
        if self._pace is None:
            return size_bytes / self._rate
        return size_bytes * self._pace(message_id, occasion)

    def _fails_in(self, epoch: int) -> bool:
        if self.conditions.failure_probability <= 0.0:
            return False
        block, offset = epoch >> _BLOCK_BITS, epoch & ((1 << _BLOCK_BITS) - 1)
        while len(self._failed) <= block:
            self._failed.append(self._draw_block(len(self._failed)))
        return self._failed[block][offset] == 1

    def _draw_block(self, block: int) -> bytes:
        probability = self.conditions.failure_probability
        return self._draws.failed_epochs(probability, 1 << _BLOCK_BITS, self._ends, block)


def _drawn_pace(
    a: str, b: str, conditions: Conditions, draws: Draws
) -> Callable[[int, int], float] | None:
    """Seconds per byte of a message at an occasion; None where the rate is not drawn."""
    mean = conditions.s_per_byte
    if mean <= 0.0:
        return None
    return draws.normal(mean, conditions.deviation_s_per_byte, LEAST_OF_MEAN * mean, "pace", a, b)
