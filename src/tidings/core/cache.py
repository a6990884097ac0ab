"""A dict for what can be computed anew: it never grows beyond its bound.

When it is full it begins again, empty. That costs some computing now and then, and no book-keeping
at each look-up, which hot paths do with a plain `get`.
"""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """Values by key, at most so many of them."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """The value, which is found under its key from now on."""
        if len(self) >= self._most and key not in self:
            self.clear()
        self[key] = value
        return value
