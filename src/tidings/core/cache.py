"""A dict for what can be computed anew: it never grows beyond its bound.

The bound is on the sum of the sizes of its entries, in bytes, or in entries where all are small.
When an entry finds no room, the cache begins again, empty. That costs some computing now and then,
and no book-keeping at each look-up, which hot paths do with a plain `get`. An entry that would take
much of the cache alone is not kept: it would drive out all that is asked for more often.
"""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

LARGEST_PART = 4  # of a cache, which one entry may take


class BoundedCache(dict[K, V]):
    """Values by key; the sum of their sizes stays within `most`."""

    __slots__ = ("_largest", "_most", "_size")

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._largest = most, max(1, most // LARGEST_PART)
        self._size = 0

    def keep(self, key: K, value: V, size: int = 1) -> V:
        """The value, which is found under its key from now on, unless it is very large."""
        if key not in self:
            if size > self._largest:
                return value
            if self._size + size > self._most:
                self.clear()
            self._size += size
        self[key] = value
        return value

    def forget(self, key: K, size: int = 1) -> None:
        """Makes room for others; the size is the one it was kept with."""
        del self[key]
        self._size -= size

    def clear(self) -> None:
        super().clear()
        self._size = 0
