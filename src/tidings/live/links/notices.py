"""What is an operator told about links? Which are up, which are not, and why.

A link that comes and goes is information, what has to be mended (a name that does not resolve, a
peer that is refused) is a warning. All lines have a limit, since peers can cause them: see
`live.rate_limited`.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from typing import Any

from tidings.live.clock import Clock
from tidings.live.config import Neighbour
from tidings.live.rate_limited import RateLimitedWarnings

LINES_PER_LINK = 10  # a minute, before a link that comes and goes is only counted

logger = logging.getLogger("tidings.links")


class LinkNotices:
    """The lines about the links of one broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._started_at = clock, clock()
        self._lost_at: dict[str, float] = {}
        self._changes = RateLimitedWarnings(logger, clock, lines=LINES_PER_LINK)
        self._failures = RateLimitedWarnings(logger, clock)
        self._refusals = RateLimitedWarnings(logger, clock)

    def not_reached(self, neighbour: Neighbour, why: str, pause_s: float, fault: bool) -> None:
        """A neighbour was dialled in vain; `fault`: somebody has to mend it."""
        tell = self._failures.warn if fault else self._failures.inform
        where = f"{neighbour.host}:{neighbour.port}"
        text = f"no link to {neighbour.name}: {where} {why}. It is dialled again in {pause_s:.1f} s"
        tell(f"{text}, and so on until it answers", f"{neighbour.name} {why}")

    def up(self, neighbour: str, peer: Any) -> None:
        lost_at, now = self._lost_at.get(neighbour), self._clock()
        since = "the start" if lost_at is None else "it was lost"
        after_s = now - (self._started_at if lost_at is None else lost_at)
        words = f"link to {neighbour} ({address(peer)}) is up, {after_s:.1f} s after {since}"
        self._changes.inform(words, neighbour)

    def down(self, neighbour: str, why: str) -> None:
        self._lost_at[neighbour] = self._clock()
        self._changes.inform(f"link to {neighbour} is down: {why}", neighbour)

    def silent(self, neighbour: str, why: str) -> None:
        """It counts as down, whatever TCP believes."""
        self._lost_at[neighbour] = self._clock()
        words = f"link to {neighbour} is silent: {why}; messages avoid it until it answers"
        self._changes.inform(words, neighbour)

    def answers(self, neighbour: str) -> None:
        silent_s = self._clock() - self._lost_at.get(neighbour, self._started_at)
        words = f"link to {neighbour} answers again, after {silent_s:.1f} s"
        self._changes.inform(words, neighbour)

    def refused(self, neighbour: str, peer: Any, why: str) -> None:
        """A connection was closed because of what the peer said, or did not say."""
        who, host = neighbour or address(peer), neighbour or str(peer and peer[0])
        self._refusals.warn(f"a link connection from {who} is closed: {why}", f"{host} {why}")

    def flush(self, ending: bool = False) -> None:
        for lines in (self._changes, self._failures, self._refusals):
            lines.flush(ending)


def address(peer: Any) -> str:
    """Where a peer is, as a socket tells it; one that is gone already tells nothing."""
    return f"{peer[0]}:{peer[1]}" if peer else "a peer that is gone"


def why_not_reached(error: Exception, within_s: float) -> tuple[str, bool]:
    """Why nobody answered, in words; and whether that is somebody's mistake."""
    if isinstance(error, socket.gaierror):
        return f"does not resolve ({error.strerror})", True
    if isinstance(error, UnicodeError):
        return "is not a name that a host can have", True
    if isinstance(error, TimeoutError):
        return f"does not answer within {within_s:g} s", False
    if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
        return "refuses connections: nothing listens there", False
    return f"cannot be reached ({reason(error)})", False


def why_silent(quiet_s: float, suspect_after_s: float, probes_missed: int) -> str:
    """Why a connection that is there counts as down."""
    if quiet_s >= suspect_after_s:
        return f"it was asked again and again, and has said nothing for {quiet_s:.1f} s"
    return f"{probes_missed} probes in a row had no answer"


def why_lost(problem: Exception | None) -> str:
    """Why a connection ended that this side did not end."""
    if problem is None:
        return "the other end closed it"
    if isinstance(problem, TimeoutError):
        return "the other end does not answer any more"
    return reason(problem)


def reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error) or type(error).__name__
