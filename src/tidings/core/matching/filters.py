"""Which subscriptions to one topic filter want a message with these attributes?

Newcomers are kept aside and evaluated one by one, up to FRESH_LIMIT of them: most filters have few
subscribers and never need a table, and one that has many settles its newcomers in batches, lazily,
when the next message comes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tidings.core.matching.conjunctions import ALWAYS, Conjunction, Shape, conjunctions
from tidings.core.matching.rows import NO_KEYS, Keys
from tidings.core.matching.shapes import ShapeTable
from tidings.core.predicate import Attributes, Predicate

FRESH_LIMIT = 32  # evaluating this many predicates costs about what one table does


class FilterTable:
    """The subscriptions to one topic filter: key and predicate, or None to want everything."""

    __slots__ = (
        "_anchored",
        "_fresh",
        "_predicates",
        "_repeating",
        "_settled",
        "_tables",
        "topic_filter",
    )

    def __init__(self, topic_filter: str) -> None:
        self.topic_filter = topic_filter
        self._fresh: dict[int, Predicate | None] = {}
        self._settled: dict[int, Predicate | None] = {}
        self._tables: dict[Shape, ShapeTable] = {}
        self._anchored: dict[str | None, list[ShapeTable]] = {}
        self._repeating: set[int] = set()  # keys that stand in several rows
        self._predicates = 0

    def __len__(self) -> int:
        return len(self._fresh) + len(self._settled)

    def add(self, key: int, where: Predicate | None) -> None:
        self._fresh[key] = where
        self._predicates += where is not None

    def remove(self, key: int) -> None:
        is_fresh = key in self._fresh
        where = self._fresh.pop(key) if is_fresh else self._settled.pop(key)
        self._predicates -= where is not None
        if not is_fresh:
            self._unsettle(key, where)

    def conditional(self) -> bool:
        """Whether there are predicates, so that attributes matter."""
        return self._predicates > 0

    def unconditional(self) -> Keys:
        """The sorted keys of those that want everything."""
        self._settle()
        table = self._tables.get(ALWAYS.shape)
        fresh = [key for key, where in self._fresh.items() if where is None]
        return gathered([_sorted_keys(fresh), *(table.match({}) if table else ())])

    def match(self, attributes: Attributes) -> Keys:
        """The sorted keys of those whose predicate matches."""
        self._settle()
        parts = [_sorted_keys(_evaluated(self._fresh, attributes))]
        for anchor in (None, *attributes):
            for table in self._anchored.get(anchor, ()):
                parts += self._matched(table, attributes)
        return gathered(parts, repeating=bool(self._repeating))

    def _matched(self, table: ShapeTable, attributes: Attributes) -> list[Keys]:
        parts = table.match(attributes)
        if not table.shape.residual:
            return parts
        candidates = np.concatenate([NO_KEYS, *parts]).tolist()
        wanted = _evaluated({key: self._settled[key] for key in candidates}, attributes)
        return [_sorted_keys(wanted)]

    def _settle(self) -> None:
        """Moves the newcomers into the tables if they are too many to look at one by one."""
        if len(self._fresh) <= FRESH_LIMIT:
            return
        entries: defaultdict[Shape, list[tuple[int, Conjunction]]] = defaultdict(list)
        for key, where in self._fresh.items():
            alternatives = conjunctions(where)
            if len(alternatives) > 1:
                self._repeating.add(key)
            for conjunction in alternatives:
                entries[conjunction.shape].append((key, conjunction))
        for shape, of_shape in entries.items():
            self._table(shape).add(of_shape)
        self._settled.update(self._fresh)
        self._fresh.clear()

    def _unsettle(self, key: int, where: Predicate | None) -> None:
        self._repeating.discard(key)
        # Cutting the predicate up again takes microseconds; keeping the pieces would take memory.
        for conjunction in conjunctions(where):
            table = self._tables.get(conjunction.shape)
            if table is not None:
                table.remove(key, conjunction.constants)
                self._drop_if_empty(table)

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


def gathered(parts: Sequence[Keys], repeating: bool = False) -> Keys:
    """All keys of sorted parts, sorted; without repetition, if there may be any."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return NO_KEYS
    keys = filled[0]
    if len(filled) > 1:
        # The stable sort merges runs that are sorted already, thirty times faster than the default.
        keys = np.sort(np.concatenate(filled), kind="stable")
    if repeating:
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    return keys


def _evaluated(subscriptions: dict[int, Predicate | None], attributes: Attributes) -> list[int]:
    """The keys whose predicate matches, each asked in turn."""
    return [
        key
        for key, where in subscriptions.items()
        if where is not None and where.matches(attributes)
    ]


def _sorted_keys(keys: list[int]) -> Keys:
    return np.array(sorted(keys), np.int64) if keys else NO_KEYS
