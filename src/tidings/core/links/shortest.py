"""What is the shortest of the last values? Kept so that each value costs the same, however many.

A value that came before a shorter one can never be the shortest again, so what is kept only grows
towards the newest.
"""

from __future__ import annotations

from collections import deque


class ShortestLately:
    """The least of the values of the last seconds."""

    __slots__ = ("_kept", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: deque[tuple[float, float]] = deque()  # (instant, value)

    def add(self, value: float, now: float) -> float:
        """Takes a value, and gives back the least that there was lately."""
        kept = self._kept
        while kept and kept[-1][1] >= value:
            kept.pop()
        kept.append((now, value))
        while kept[0][0] < now - self._seconds:
            kept.popleft()
        return kept[0][1]
