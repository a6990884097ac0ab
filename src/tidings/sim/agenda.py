"""What happens next: events in a total order of (time, priority, serial).

An event is a function and its three arguments; plain calls cost half of what generators would.
Priorities order what falls on the same instant: frames arrive before anybody's patience ends.

Few events share an instant. So one heap orders instants, which are plain numbers and compared in a
fifth of the time that tuples take, and each instant has a small heap of its own events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any, Final

# Priority and serial are one number; no run has 2⁵⁶ events.
ARRIVAL: Final = 0
READY: Final = 1 << 56
FAULT: Final = 2 << 56
PUBLICATION: Final = 3 << 56
WAKE: Final = 4 << 56

Action = Callable[[Any, Any, Any, float], None]
_Event = tuple[int, Action, Any, Any, Any]


class Agenda:
    """Events that are still to come."""

    def __init__(self) -> None:
        self._instants: list[float] = []
        self._events: dict[float, list[_Event]] = {}  # by instant
        self._serial = 0

    def add(
        self, at: float, priority: int, action: Action, a: Any = None, b: Any = None, c: Any = None
    ) -> None:
        """At that instant, call `action(a, b, c, at)`."""
        self._serial += 1
        event = (priority + self._serial, action, a, b, c)
        together = self._events.get(at)
        if together is None:
            self._events[at] = [event]
            heappush(self._instants, at)
        else:
            heappush(together, event)

    def run(self, until: float) -> int:
        """Let everything happen up to that instant; how many events that were."""
        instants, events, count = self._instants, self._events, 0
        while instants and instants[0] <= until:
            at = heappop(instants)
            together = events[at]
            while together:  # what happens may add to it
                _, action, a, b, c = heappop(together)
                action(a, b, c, at)
                count += 1
            del events[at]
        return count

    def pending(self) -> Iterator[tuple[Any, Any, Any]]:
        """The arguments of all events that did not happen yet."""
        return ((a, b, c) for each in self._events.values() for _, _, a, b, c in each)
