"""What time is it? Wall-clock seconds that never step.

A broker needs a clock that only goes forward; a trace wants instants that brokers of one machine
share. So the wall clock is read once, at start, and the monotonic clock carries on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]

TIMER_GRAIN_S = 0.001  # of the event loop: a timer fires up to so much later than it was set for


def wall_clock() -> Clock:
    """A clock that agrees with the wall now and is never set back."""
    monotonic = time.monotonic
    offset_s = time.time() - monotonic()
    return lambda: monotonic() + offset_s
