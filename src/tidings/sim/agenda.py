"""What happens next: a heap of events in a total order of (time, priority, serial).

An event is a function and its three arguments; plain calls cost half of what generators would.
Priorities order what falls on the same instant: frames arrive before anybody's patience ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any

# Priority and serial are one number, so that a comparison of two events looks at two numbers.
ARRIVAL, READY, FAULT, PUBLICATION, WAKE, LAST = (priority << 60 for priority in range(6))

Action = Callable[[Any, Any, Any, float], None]


class _Stop(Exception):
    """Raised by the event that ends a stretch: cheaper than asking before every event."""


def _stop(a: Any, b: Any, c: Any, at: float) -> None:
    raise _Stop


class Agenda:
    """Events that are still to come."""

    def __init__(self) -> None:
        self._events: list[tuple[float, int, Action, Any, Any, Any]] = []
        self._serial = 0

    def add(
        self, at: float, priority: int, action: Action, a: Any = None, b: Any = None, c: Any = None
    ) -> None:
        """At that instant, call `action(a, b, c, at)`."""
        self._serial += 1
        heappush(self._events, (at, priority + self._serial, action, a, b, c))

    def run(self, until: float) -> int:
        """Let everything happen up to that instant; how many events that were."""
        events, before = self._events, self._serial - len(self._events)
        self.add(until, LAST, _stop)
        with suppress(_Stop):
            while True:
                at, _, action, a, b, c = heappop(events)
                action(a, b, c, at)
        return self._serial - len(self._events) - before - 1

    def pending(self) -> Iterator[tuple[Any, Any, Any]]:
        """The arguments of all events that did not happen yet."""
        return ((a, b, c) for _, _, _, a, b, c in self._events)
