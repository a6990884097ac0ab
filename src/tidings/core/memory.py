"""Remembering what was seen, for a bounded time, at the price of two set look-ups.

Keys live in two generations. When the younger has filled for one span it becomes the older, and
what was the older is forgotten: a key is remembered for at least one span and at most two after it
was last seen. A generation that grows too large ends early: memory is bounded before time is.
"""

from __future__ import annotations

from math import inf

MOST_KEYS = 1_000_000  # in a generation: about 64 MB


class Memory:
    """Was this key seen before?"""

    __slots__ = ("_older", "_rotate_at", "_span_s", "_younger")

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._younger: set[int] = set()
        self._older: set[int] = set()
        self._rotate_at = -inf

    def repeated(self, key: int, now: float) -> bool:
        """True if the key was seen within the span; it is remembered from now on either way."""
        if now >= self._rotate_at:
            self._rotate(now)
        if key in self._younger:
            return True
        self._younger.add(key)
        known = key in self._older
        if len(self._younger) > MOST_KEYS:
            self._older, self._younger = self._younger, set()
        return known

    def _rotate(self, now: float) -> None:
        long_ago = now >= self._rotate_at + self._span_s
        self._older = set() if long_ago else self._younger
        self._younger = set()
        self._rotate_at = self._span_s + (now if long_ago else self._rotate_at)
