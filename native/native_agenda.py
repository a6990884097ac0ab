"""What happens next: the twin of `sim/agenda.py` that is compiled.

Compiled, an event is a native object whose instant is a plain number in it, so one heap of events
costs half of what the two levels cost that are fast when they are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:  # compiled code needs nothing of its compiler to run
    from mypy_extensions import i64

ARRIVAL: Final = 0
READY: Final = 1 << 56
FAULT: Final = 2 << 56
PUBLICATION: Final = 3 << 56
WAKE: Final = 4 << 56

Action = Callable[[Any, Any, Any, float], None]


@final
class Event:
    """A function, its arguments, and its place in the order."""

    def __init__(self, at: float, rank: i64, action: Action, a: Any, b: Any, c: Any) -> None:
        self.at, self.rank = at, rank  # priority and serial are one number
        self.action, self.a, self.b, self.c = action, a, b, c

    def precedes(self, other: Event) -> bool:
        return self.at < other.at or (self.at == other.at and self.rank < other.rank)


class Agenda:
    """Events that are still to come."""

    def __init__(self) -> None:
        self._heap: list[Event] = []
        self._serial: i64 = 0

    def add(
        self, at: float, priority: i64, action: Action, a: Any = None, b: Any = None, c: Any = None
    ) -> None:
        """At that instant, call `action(a, b, c, at)`."""
        self._serial += 1
        event, heap = Event(at, priority + self._serial, action, a, b, c), self._heap
        place: i64 = len(heap)
        heap.append(event)
        while place > 0:
            above: i64 = (place - 1) >> 1
            parent = heap[above]
            if not event.precedes(parent):
                break
            heap[place] = parent
            place = above
        heap[place] = event

    def run(self, until: float) -> int:
        """Let everything happen up to that instant; how many events that were."""
        heap, count = self._heap, 0
        while heap and heap[0].at <= until:
            event = self._pop()
            event.action(event.a, event.b, event.c, event.at)
            count += 1
        return count

    def _pop(self) -> Event:
        heap = self._heap
        last = heap.pop()
        size: i64 = len(heap)
        if size == 0:
            return last
        first = heap[0]
        place: i64 = 0
        below: i64 = 1
        while below < size:
            child = heap[below]
            if below + 1 < size:
                other = heap[below + 1]
                if other.precedes(child):
                    child = other
                    below += 1
            if not child.precedes(last):
                break
            heap[place] = child
            place = below
            below = 2 * place + 1
        heap[place] = last
        return first

    def pending(self) -> Iterator[tuple[Any, Any, Any]]:
        """The arguments of all events that did not happen yet."""
        return iter([(event.a, event.b, event.c) for event in self._heap])
