"""Which subscriptions to one topic filter want a message with these attributes?

Newcomers are kept aside and evaluated one by one, up to FRESH_LIMIT of them: most filters have few
subscribers and never need a table, and one that has many settles its newcomers in batches, lazily,
when the next message comes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.core.matching.rows import NO_KEYS, Keys
from tidings.core.matching.settled import Settled, evaluated, sorted_keys
from tidings.core.predicate import Attributes, Predicate

FRESH_LIMIT = 32  # evaluating this many predicates costs about what one table does


class FilterTable:
    """The subscriptions to one topic filter: key and predicate, or None to want everything."""

    __slots__ = ("_fresh", "_predicates", "_settled", "topic_filter")

    def __init__(self, topic_filter: str) -> None:
        self.topic_filter = topic_filter
        self._fresh: dict[int, Predicate | None] = {}
        self._settled: Settled | None = None  # mostly: there may be a million filters
        self._predicates = 0

    def __len__(self) -> int:
        return len(self._fresh) + (0 if self._settled is None else len(self._settled))

    def add(self, key: int, where: Predicate | None) -> None:
        self._fresh[key] = where
        self._predicates += where is not None

    def remove(self, key: int) -> None:
        if key in self._fresh or self._settled is None:
            where = self._fresh.pop(key)
        else:
            where = self._settled.remove(key)
        self._predicates -= where is not None

    def conditional(self) -> bool:
        """Whether there are predicates, so that attributes matter."""
        return self._predicates > 0

    def unconditional(self) -> Keys:
        """The sorted keys of those that want everything."""
        settled = self._settle()
        fresh = sorted_keys([key for key, where in self._fresh.items() if where is None])
        return gathered([fresh] if settled is None else [fresh, *settled.unconditional()])

    def match(self, attributes: Attributes) -> Keys:
        """The sorted keys of those whose predicate matches."""
        settled = self._settle()
        fresh = evaluated(self._fresh, attributes)
        if settled is None:
            return fresh
        return gathered([fresh, *settled.match(attributes)], repeating=settled.repeats)

    def _settle(self) -> Settled | None:
        """Moves the newcomers into tables if they are too many to look at one by one."""
        if len(self._fresh) > FRESH_LIMIT:
            if self._settled is None:
                self._settled = Settled()
            self._settled.add(self._fresh)
            self._fresh.clear()
        return self._settled


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
