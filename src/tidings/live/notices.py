"""How does a broker tell whoever runs it? In the log, and of the same thing not too often.

What a warning is about stands before its first colon; what follows (numbers, names) may differ each
time.
"""

from __future__ import annotations

import logging

SAY_AGAIN_AFTER_S = 60.0
MOST_REMEMBERED = 1_000

log = logging.getLogger("tidings.broker")


class Notices:
    """What was said of late."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def say(self, text: str, now: float) -> None:
        about = text.partition(":")[0]
        said_at = self._said.get(about)
        if said_at is not None and 0 <= now - said_at < SAY_AGAIN_AFTER_S:
            return
        if len(self._said) >= MOST_REMEMBERED:
            self._said.clear()
        self._said[about] = now
        log.warning("%s", text)
