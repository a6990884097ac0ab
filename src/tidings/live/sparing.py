"""How is trouble told that comes again and again? Once a minute at most, and counted.

A peer that misbehaves a thousand times a second must not fill the disk with lines about it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

TELL_EVERY_S = 60.0


class SparingWarning:
    """One kind of trouble."""

    def __init__(
        self, log: logging.Logger, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.count = 0  # how often it happened, told or not
        self._log, self._monotonic = log, monotonic
        self._silent_until = -TELL_EVERY_S

    def warn(self, problem: str) -> None:
        self.count += 1
        now = self._monotonic()
        if now >= self._silent_until:
            self._silent_until = now + TELL_EVERY_S
            self._log.warning("%s (%d so far)", problem, self.count)
