"""How do many subscriptions to one filter stand in tables? By the shapes of their predicates.

Tables are found by an attribute without which none of their rows matches, so that those are passed
over that a message has nothing to say to. Whoever passes a table with a residual is asked directly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from tidings.core.matching.conjunctions import ALWAYS, Conjunction, Shape, conjunctions
from tidings.core.matching.rows import NO_KEYS, Keys
from tidings.core.matching.shapes import ShapeTable
from tidings.core.predicate import Attributes, Predicate


class Settled:
    """Keys, each with its predicate or None to want everything."""

    __slots__ = ("_anchored", "_predicates", "_repeating", "_tables")

    def __init__(self) -> None:
        self._predicates: dict[int, Predicate | None] = {}
        self._tables: dict[Shape, ShapeTable] = {}
        self._anchored: dict[str | None, list[ShapeTable]] = {}
        self._repeating: set[int] = set()  # keys that stand in several rows

    def __len__(self) -> int:
        return len(self._predicates)

    @property
    def repeats(self) -> bool:
        """Whether what matches may name a key twice."""
        return bool(self._repeating)

    def add(self, newcomers: Mapping[int, Predicate | None]) -> None:
        entries: defaultdict[Shape, list[tuple[int, Conjunction]]] = defaultdict(list)
        for key, where in newcomers.items():
            alternatives = conjunctions(where)
            if len(alternatives) > 1:
                self._repeating.add(key)
            for conjunction in alternatives:
                entries[conjunction.shape].append((key, conjunction))
        for shape, of_shape in entries.items():
            self._table(shape).add(of_shape)
        self._predicates.update(newcomers)

    def remove(self, key: int) -> Predicate | None:
        """Its predicate; KeyError if there is none of this key."""
        where = self._predicates.pop(key)
        self._repeating.discard(key)
        # Cutting the predicate up again takes microseconds; keeping the pieces would take memory.
        for conjunction in conjunctions(where):
            table = self._tables.get(conjunction.shape)
            if table is not None:
                table.remove(key, conjunction.constants)
                self._drop_if_empty(table)
        return where

    def unconditional(self) -> list[Keys]:
        """The keys of those that want everything."""
        table = self._tables.get(ALWAYS.shape)
        return table.match({}) if table else []

    def match(self, attributes: Attributes) -> list[Keys]:
        """The keys of those whose predicate matches."""
        parts: list[Keys] = []
        for anchor in (None, *attributes):
            for table in self._anchored.get(anchor, ()):
                parts += self._matched(table, attributes)
        return parts

    def _matched(self, table: ShapeTable, attributes: Attributes) -> list[Keys]:
        parts = table.match(attributes)
        if not table.shape.residual:
            return parts
        candidates = np.concatenate([NO_KEYS, *parts]).tolist()
        return [evaluated({key: self._predicates[key] for key in candidates}, attributes)]

    def _table(self, shape: Shape) -> ShapeTable:
        if shape not in self._tables:
            self._tables[shape] = table = ShapeTable(shape)
            if shape != ALWAYS.shape:
                self._anchored.setdefault(shape.anchor(), []).append(table)
        return self._tables[shape]

    def _drop_if_empty(self, table: ShapeTable) -> None:
        if len(table):
            return
        del self._tables[table.shape]
        if table.shape != ALWAYS.shape:
            siblings = self._anchored[table.shape.anchor()]
            siblings.remove(table)
            if not siblings:
                del self._anchored[table.shape.anchor()]


def evaluated(subscriptions: Mapping[int, Predicate | None], attributes: Attributes) -> Keys:
    """The sorted keys whose predicate matches, each asked in turn."""
    return sorted_keys(
        [
            key
            for key, where in subscriptions.items()
            if where is not None and where.matches(attributes)
        ]
    )


def sorted_keys(keys: list[int]) -> Keys:
    return np.array(sorted(keys), np.int64) if keys else NO_KEYS
