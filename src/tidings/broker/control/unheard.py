"""Whose wishes are kept of those who are not heard any more, and until when?

A broker's wishes live as long as its reports about links. When these are forgotten, so are the
wishes. If durable ones are among them, all are kept for `unheard_s`: their broker may be cut off or
down for long, and must not miss what was promised. Wishes that a neighbour passes on of a broker
that has not reported itself here are forgotten unless it does so within the lifetime of a report.
"""

from __future__ import annotations

from math import inf

from tidings.broker.control.interests import InterestTable
from tidings.broker.control.link_state import LinkState


class Unheard:
    """Brokers that have wishes here and no report."""

    def __init__(
        self, interests: InterestTable, link_state: LinkState, lifetime_s: float, unheard_s: float
    ) -> None:
        self._interests, self._link_state = interests, link_state
        self._lifetime_s, self._unheard_s = lifetime_s, unheard_s
        self._until: dict[str, float] = {}  # by broker
        self.due_at = inf  # when somebody may be forgotten

    def heard(self, origin: str, now: float) -> None:
        """Somebody passes on the wishes of a broker."""
        if self._lifetime_s < inf and not self._link_state.knows(origin):
            self._keep(origin, now + self._lifetime_s)

    def gone(self, origin: str, now: float) -> None:
        """The reports of a broker are forgotten."""
        self._keep(origin, now + self._patience_s(origin))

    def forget(self, now: float) -> None:
        """Let go of the wishes of those for whom it is time."""
        if now < self.due_at:
            return
        for origin in [origin for origin, until in self._until.items() if until <= now]:
            del self._until[origin]
            if not self._link_state.knows(origin):
                self._interests.forget(origin)
        self.due_at = min(self._until.values(), default=inf)

    def _patience_s(self, origin: str) -> float:
        return self._unheard_s if self._interests.has_durable(origin) else 0.0

    def _keep(self, origin: str, until: float) -> None:
        self._until[origin] = max(until, self._until.get(origin, 0.0))
        self.due_at = min(self.due_at, until)
