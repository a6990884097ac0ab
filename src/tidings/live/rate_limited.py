"""How is trouble reported that comes again and again? Once a minute at most.

A peer that misbehaves a thousand times a second must not fill the disk with lines about it. What a
warning is about stands before its first colon, unless the caller names it; what follows (numbers,
names) may differ each time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tidings.core.cache import BoundedCache

AGAIN_AFTER_S = 60.0
SUBJECTS = 1_000  # that are remembered: names in warnings come from peers, who can invent many


class RateLimitedWarnings:
    """Writes warnings to a logger, about each subject at most once in `AGAIN_AFTER_S`."""

    def __init__(
        self,
        logger: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
        counted: bool = False,
    ) -> None:
        """With `counted`, each line ends with how often something was to be warned of so far."""
        self.count = 0  # of all warnings, written or not
        self._logger, self._clock, self._counted = logger, clock, counted
        self._written_at = BoundedCache[str, float](SUBJECTS)

    def warn(self, text: str, subject: str = "") -> None:
        """Writes a line, unless one about the same subject was written within the last minute."""
        self.count += 1
        subject, now = subject or text.partition(":")[0], self._clock()
        written_at = self._written_at.get(subject)
        if written_at is not None and 0 <= now - written_at < AGAIN_AFTER_S:
            return
        self._written_at.keep(subject, now)
        self._logger.warning("%s", f"{text} ({self.count} so far)" if self._counted else text)
