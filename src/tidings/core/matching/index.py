"""Which subscriptions want this message? The index that a broker asks.

What depends on the topic alone is a plan, which the broker keeps for a topic while `version` stays
the same; what depends on the message's attributes is asked of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidings.core.matching.filters import FilterTable, gathered
from tidings.core.matching.rows import Keys
from tidings.core.matching.trie import TopicTrie
from tidings.core.predicate import Attributes, Predicate
from tidings.core.topic import check_filter, check_topic


class TopicPlan:
    """How to match the messages of one topic; holds until the index changes."""

    __slots__ = ("_tables", "conditional", "unconditional")

    def __init__(self, tables: Sequence[FilterTable]) -> None:
        self.unconditional: Final[Keys] = gathered([table.unconditional() for table in tables])
        """The sorted keys whose filter matches and that have no predicate."""
        self.unconditional.flags.writeable = False  # handed out with every message
        self._tables = [table for table in tables if table.conditional()]
        self.conditional: Final[bool] = bool(self._tables)
        """Whether some matching filter has predicates, so that attributes matter."""

    def match(self, attributes: Attributes) -> Keys:
        """The sorted keys of all subscriptions that want a message with these attributes."""
        if not self._tables:
            return self.unconditional
        return gathered([self.unconditional, *(table.match(attributes) for table in self._tables)])


class MatchingIndex:
    """Subscriptions by key: a topic filter each, and perhaps a predicate."""

    def __init__(self) -> None:
        self.version = 0
        """Changes with every add and remove; a plan made before that is stale."""
        self._of_key: dict[int, FilterTable] = {}
        self._of_filter: dict[str, FilterTable] = {}
        self._trie: TopicTrie[FilterTable] = TopicTrie()

    def __len__(self) -> int:
        return len(self._of_key)

    def __contains__(self, key: int) -> bool:
        return key in self._of_key

    def add(self, key: int, topic_filter: str, where: Predicate | None = None) -> None:
        """Takes in a subscription; FilterError if no one can subscribe to the filter."""
        if key in self._of_key:
            raise ValueError(f"key {key} is in use, remove it before adding it anew")
        table = self._of_filter.get(topic_filter)
        if table is None:
            check_filter(topic_filter)
            table = self._of_filter[topic_filter] = FilterTable(topic_filter)
            self._trie.insert(topic_filter, table)
        table.add(key, where)
        self._of_key[key] = table
        self.version += 1

    def remove(self, key: int) -> None:
        """Takes out a subscription; KeyError if there is none of this key."""
        table = self._of_key.pop(key)
        table.remove(key)
        if not len(table):
            del self._of_filter[table.topic_filter]
            self._trie.remove(table.topic_filter)
        self.version += 1

    def plan(self, topic: str) -> TopicPlan:
        """How to match messages of this topic; TopicError if no one can publish to it."""
        check_topic(topic)
        return TopicPlan(self._trie.matching(topic))

    def match(self, topic: str, attributes: Attributes) -> Keys:
        """The sorted keys of all subscriptions that want this message."""
        return self.plan(topic).match(attributes)
