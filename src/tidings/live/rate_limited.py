"""How is trouble reported that comes again and again? Up to a limit; the rest is counted.

A peer that misbehaves a thousand times a second must not fill the disk with lines about it. What a
line is about stands before its first colon, unless the caller names it; what follows (numbers,
names) may differ each time. Of one subject some lines are written in a minute, and of all subjects
together some more, because names in lines come from peers, who can invent many. When the minute is
over, the last line that was left out is written (`flush`) with how many there were like it, so the
log ends with how things are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tidings.core.cache import BoundedCache

AGAIN_AFTER_S = 60.0
SUBJECTS = 1_000  # that are remembered, each with a line: a few megabytes
MOST_LINES = 60  # within `AGAIN_AFTER_S`, about all subjects together
MOST_CHARACTERS = 1_000  # of a line: a client's name may have 65,535 bytes


class _Subject:
    """What was written, and not written, of one subject since its minute began."""

    __slots__ = ("begun_at", "last", "left_out", "level", "written")

    def __init__(self, begun_at: float) -> None:
        self.begun_at = begun_at
        self.written = self.left_out = 0
        self.level, self.last = logging.WARNING, ""  # of the last line that was left out

    def leave_out(self, level: int, text: str) -> None:
        self.left_out += 1
        self.level, self.last = level, text

    def is_over(self, now: float) -> bool:
        return not 0 <= now - self.begun_at < AGAIN_AFTER_S


class RateLimitedWarnings:
    """Writes warnings to a logger, about each subject at most `lines` in `AGAIN_AFTER_S`."""

    def __init__(
        self,
        logger: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
        counted: bool = False,
        lines: int = 1,
    ) -> None:
        """With `counted`, each line ends with how often something was to be told so far."""
        self.count = 0  # of all that was to be told, written or not
        self._logger, self._clock, self._counted, self._lines = logger, clock, counted, lines
        self._subjects = BoundedCache[str, _Subject](SUBJECTS)
        self._all = _Subject(-AGAIN_AFTER_S)  # over: the first line begins a minute

    def warn(self, text: str, subject: str = "") -> None:
        """Writes a line about something to be mended, unless there were enough about it."""
        self._tell(logging.WARNING, text, subject)

    def inform(self, text: str, subject: str = "") -> None:
        """Writes a line about what comes and goes, unless there were enough about it."""
        self._tell(logging.INFO, text, subject)

    def flush(self, ending: bool = False) -> None:
        """Tells of what was left out, once the minute is over, or nothing more will come."""
        now = self._clock()
        for name, about in list(self._subjects.items()):
            if ending or about.is_over(now):
                self._subjects.forget(name)
                if about.left_out:
                    self._write(about.level, about.last, about.left_out - 1)
        if self._all.left_out and (ending or self._all.is_over(now)):
            self._write(self._all.level, self._all.last, self._all.left_out - 1, "and others")
            self._all = _Subject(now)

    def _tell(self, level: int, text: str, subject: str) -> None:
        self.count += 1
        text = one_line(text)
        subject, now = (subject or text.partition(":")[0])[:MOST_CHARACTERS], self._clock()
        if self._all.is_over(now):
            self._begin_minute(now)
        about, left_out = self._subjects.get(subject), 0
        if about is None or about.is_over(now):
            if self._all.written >= MOST_LINES:
                self._all.leave_out(level, text)
                return
            left_out = about.left_out if about else 0
            about = self._subjects.keep(subject, _Subject(now))
        if about.written >= self._lines or self._all.written >= MOST_LINES:
            about.leave_out(level, text)
            return
        about.written += 1
        self._all.written += 1
        self._write(level, text, left_out)

    def _begin_minute(self, now: float) -> None:
        before, self._all = self._all, _Subject(now)
        if before.left_out:
            self._write(before.level, before.last, before.left_out - 1, "and others")

    def _write(self, level: int, text: str, left_out: int, like_it: str = "like it") -> None:
        if self._counted:
            text = f"{text} ({self.count} so far)"
        elif left_out:
            text = f"{text} ({left_out:,} more {like_it} left out)"
        self._logger.log(level, "%s", text)


def one_line(text: str) -> str:
    """The text as it can stand in a log: peers put anything into their names."""
    words = " ".join(text[: 2 * MOST_CHARACTERS].split())
    shown = "".join(c if c.isprintable() else "?" for c in words[:MOST_CHARACTERS])
    return shown if len(words) <= MOST_CHARACTERS else shown + "..."
