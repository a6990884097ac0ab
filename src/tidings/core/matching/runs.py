"""Which rows of a table does a message pass, when each row is a list of limits?

A run is an immutable table of conjunctions of one shape: rows with equal constants stand together
in a span, by rising key. Each bound is a column, kept twice: in row order, to compare a whole span
in one vector operation, and sorted within the span, to find by bisection how many rows pass. If few
pass some bound, only those are checked further; otherwise comparing everything is cheaper (about
0.13 ns a row and bound) and leaves the keys in order. Limits are 64-bit floats, so no row is
decided by rounding. A row dies by its flag; the dead are left out when runs are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tidings.core.matching.conjunctions import Side
from tidings.core.matching.rows import NO_KEYS, Constants, Keys, Rows

SCAN_SHARE = 10  # searching, which must sort its result, beats scanning below a tenth of the rows


class Column:
    """One bound of every row."""

    __slots__ = ("below", "limits", "order", "sorted_limits")

    def __init__(self, side: Side, limits: NDArray[np.float64], codes: NDArray[np.int64]) -> None:
        self.below = side == "below"
        self.limits = limits
        self.order = np.lexsort((limits, codes)).astype(np.int32)
        self.sorted_limits = limits[self.order]

    def passed(self, start: int, stop: int, number: float) -> NDArray[np.int32]:
        """The rows of the span whose bound the number keeps, by rising limit."""
        cut = start + int(self.sorted_limits[start:stop].searchsorted(number, "right"))
        return self.order[cut:stop] if self.below else self.order[start:cut]

    def test(self, rows: slice | NDArray[np.int32], number: float) -> NDArray[np.bool_]:
        """For each of the rows, whether the number keeps its bound."""
        limits = self.limits[rows]
        return limits > number if self.below else limits <= number


class SortedRun:
    """A table of conjunctions of one shape."""

    __slots__ = ("_alive", "_codes", "_columns", "_keys", "_starts", "dead")

    def __init__(self, sides: Iterable[Side], rows: Rows) -> None:
        order = np.lexsort((rows.keys, rows.codes))
        codes = rows.codes[order]
        self._keys = rows.keys[order]
        self._keys.flags.writeable = False
        self._codes = {constants: code for code, constants in enumerate(rows.constants)}
        self._starts = codes.searchsorted(np.arange(len(rows.constants) + 1))
        self._columns = [
            Column(side, limits[order], codes)
            for side, limits in zip(sides, rows.limits, strict=True)
        ]
        self._alive = np.ones(len(codes), np.bool_)
        self.dead = 0

    def __len__(self) -> int:
        return len(self._keys)

    def match(self, constants: Constants, numbers: Sequence[float]) -> Keys:
        """The keys of the living rows that have these constants and whose bounds are kept."""
        start, stop = self._span(constants)
        if start == stop:
            return NO_KEYS
        few = min(
            (c.passed(start, stop, v) for c, v in zip(self._columns, numbers, strict=True)),
            key=len,
            default=None,
        )
        if few is None:
            return self._all(start, stop)
        if len(few) * SCAN_SHARE < stop - start:
            return self._searched(few, numbers)
        return self._scanned(start, stop, numbers)

    def kill(self, key: int, constants: Constants) -> bool:
        """Takes the key's rows with these constants out; False if it has no living ones here."""
        start, stop = self._span(constants)
        span = self._keys[start:stop]
        first = start + int(span.searchsorted(key, "left"))
        last = start + int(span.searchsorted(key, "right"))
        if not self._alive[first:last].any():
            return False
        self._alive[first:last] = False
        self.dead += last - first
        return True

    def living(self) -> Rows:
        """The rows that are left."""
        alive = np.flatnonzero(self._alive)
        codes = np.repeat(np.arange(len(self._codes)), np.diff(self._starts))[alive]
        present, codes = np.unique(codes, return_inverse=True)
        constants = list(self._codes)
        return Rows(
            keys=self._keys[alive],
            constants=[constants[code] for code in present.tolist()],
            codes=codes,
            limits=[column.limits[alive] for column in self._columns],
        )

    def _span(self, constants: Constants) -> tuple[int, int]:
        code = self._codes.get(constants)
        if code is None:
            return 0, 0
        return int(self._starts[code]), int(self._starts[code + 1])

    def _all(self, start: int, stop: int) -> Keys:
        keys = self._keys[start:stop]
        return keys[self._alive[start:stop]] if self.dead else keys

    def _searched(self, rows: NDArray[np.int32], numbers: Sequence[float]) -> Keys:
        for column, number in zip(self._columns, numbers, strict=True):
            rows = rows[column.test(rows, number)]
        if self.dead:
            rows = rows[self._alive[rows]]
        return self._keys.take(np.sort(rows))

    def _scanned(self, start: int, stop: int, numbers: Sequence[float]) -> Keys:
        span = slice(start, stop)
        passed = self._alive[span] if self.dead else None
        for column, number in zip(self._columns, numbers, strict=True):
            test = column.test(span, number)
            passed = test if passed is None else np.logical_and(test, passed, out=test)
        assert passed is not None, "a run without columns is not scanned"
        return self._keys[span].take(np.flatnonzero(passed))
