"""How does a broker tell whoever runs it? In the log, and the same words not too often."""

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
        said_at = self._said.get(text)
        if said_at is not None and 0 <= now - said_at < SAY_AGAIN_AFTER_S:
            return
        if len(self._said) >= MOST_REMEMBERED:
            self._said.clear()
        self._said[text] = now
        log.warning("%s", text)
