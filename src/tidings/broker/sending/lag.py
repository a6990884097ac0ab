"""How far behind the clock is this broker? A host that is busy must not take it for dead links.

If a timer goes off late, this process had to wait for its turn, and answers that came in time lie
unread; neighbours on the same machine wait as long. So whoever waits for an answer waits longer by
as much as timers were late of late. In the simulator they never are.
"""

from __future__ import annotations

HALVES_IN_S = 1.0  # the memory of a lag
LONGEST_S = 1.0  # a process that was stopped for an hour is not slow for the next one


class Lag:
    """How late timers were lately."""

    __slots__ = ("_at", "s")

    def __init__(self) -> None:
        self.s, self._at = 0.0, 0.0

    def woken(self, wake_at: float, now: float) -> None:
        """A timer for `wake_at` went off now."""
        late_s = now - wake_at
        if self.s > 0.0:
            self.s *= 0.5 ** (max(0.0, now - self._at) / HALVES_IN_S)
        self._at = now
        if late_s > self.s:
            self.s = min(late_s, LONGEST_S)
