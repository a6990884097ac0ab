"""How do the rows of one shape grow and shrink without being sorted again each time?

The logarithmic method of Bentley and Saxe: new rows form a run of their own, and a run is merged
with the one before it as soon as that is less than GROWTH times as large. So there are at most
log(n) / log(GROWTH) runs, and a row is copied O(log n) times in its life. A run more than half dead
is written anew, which its dead have paid for.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.core.matching.conjunctions import Conjunction, Shape
from tidings.core.matching.rows import Constants, Keys, Rows, joined, rows_of
from tidings.core.matching.runs import SortedRun
from tidings.core.predicate import Attributes

GROWTH = 4  # 100,000 rows stand in at most nine runs, each costing some microseconds a message


class ShapeTable:
    """All conjunctions of one shape at one topic filter."""

    __slots__ = ("_runs", "_sides", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._sides = [side for _, side in shape.bounds]
        self._runs: list[SortedRun] = []

    def __len__(self) -> int:
        return sum(len(run) - run.dead for run in self._runs)

    def add(self, entries: Sequence[tuple[int, Conjunction]]) -> None:
        """Takes in conjunctions of this shape; all those of one key come in one call."""
        rows = rows_of(entries)
        while self._runs and len(self._runs[-1]) < GROWTH * len(rows.keys):
            rows = joined(self._runs.pop().living(), rows)
        self._append(rows)

    def remove(self, key: int, constants: Constants) -> None:
        """Takes out the key's rows with these constants, wherever they are."""
        for place, run in enumerate(self._runs):
            if run.kill(key, constants):
                if 2 * run.dead > len(run):
                    self._renew(place)
                return

    def match(self, attributes: Attributes) -> list[Keys]:
        """The keys whose conjunction the message fulfils (the residual aside), sorted per run."""
        values = self.shape.read(attributes)
        if values is None:
            return []
        return [run.match(*values) for run in self._runs]

    def _renew(self, place: int) -> None:
        living = self._runs.pop(place).living()
        if len(living.keys):
            self._runs.insert(place, SortedRun(self._sides, living))

    def _append(self, rows: Rows) -> None:
        if len(rows.keys):
            self._runs.append(SortedRun(self._sides, rows))
