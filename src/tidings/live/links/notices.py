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
from collections.abc import Container
from typing import Any

from tidings.core.errors import SHOWN_CHARACTERS
from tidings.live.clock import Clock
from tidings.live.links.addresses import Address
from tidings.live.rate_limited import RateLimitedWarnings

LINES_PER_LINK = 10  # a minute, before a link that comes and goes is only counted

logger = logging.getLogger("tidings.links")


class LinkNotices:
    """The lines about the links of one broker."""

    def __init__(self, clock: Clock, lasting: Container[str]) -> None:
        """Of neighbours other than the lasting ones nothing is remembered."""
        self._lasting = lasting
        self._clock, self._started_at = clock, clock()
        self._lost_at: dict[str, float] = {}
        self._changes = RateLimitedWarnings(logger, clock, lines=LINES_PER_LINK)
        self._failures = RateLimitedWarnings(logger, clock)
        self._refusals = RateLimitedWarnings(logger, clock)

    def not_reached(self, who: str, place: Address, why: str, pause_s: float, fault: bool) -> None:
        """A neighbour, or a member without a name, was dialled in vain; `fault`: somebody has to
        mend it."""
        tell = self._failures.warn if fault else self._failures.inform
        text = f"no link to {who}: {place} {why}. It is dialled again in {pause_s:.1f} s"
        tell(f"{text}, and so on until it answers", f"{who} {place} {why}")

    def not_opened(self, neighbour: str, why: str) -> None:
        """A broker of which others have told was dialled in vain."""
        text = f"no link to {neighbour}: {why}. Others know of it"
        self._failures.inform(f"{text}, so it may be tried again", f"{neighbour} {why}")

    def is_oneself(self, place: Address) -> None:
        self._failures.inform(f"the member at {place} is this broker itself, so it is left out")

    def turned_away(self, neighbour: str, place: str, why: str) -> None:
        """A peer does not want this broker as a neighbour."""
        who = neighbour[:SHOWN_CHARACTERS]
        words = f"{who} ({place}) turns this broker away: {why}"
        self._refusals.warn(words, f"{who} turns away {why}")

    def up(self, neighbour: str, peer: Any) -> None:
        words, now = f"link to {neighbour} ({address(peer)}) is up", self._clock()
        lost_at = self._lost_at.pop(neighbour, None)
        if neighbour in self._lasting:
            since = "the start" if lost_at is None else "it was lost"
            after_s = now - (self._started_at if lost_at is None else lost_at)
            words += f", {after_s:.1f} s after {since}"
        self._changes.inform(words, neighbour)

    def down(self, neighbour: str, why: str) -> None:
        if neighbour in self._lasting:
            self._lost_at[neighbour] = self._clock()
        else:
            self._lost_at.pop(neighbour, None)
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
