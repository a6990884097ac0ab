"""Which of many topic filters match one topic?

A trie with one node per level. The wildcards are ordinary children named `+` and `#`: no level of a
topic can have those names. A topic walks down all its possible paths at once, level by level and
without recursion, since a legal topic may have tens of thousands of levels.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class _Node(Generic[T]):
    __slots__ = ("children", "value")

    def __init__(self) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.value: T | None = None


class TopicTrie(Generic[T]):
    """A value for each topic filter, found by the topics that the filter matches."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def insert(self, topic_filter: str, value: T) -> None:
        node = self._root
        for level in topic_filter.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node()
            node = child
        node.value = value

    def remove(self, topic_filter: str) -> None:
        """Takes the filter out, and the branch that only it needed."""
        levels = topic_filter.split("/")
        path = [self._root]
        for level in levels:
            path.append(path[-1].children[level])
        path[-1].value = None
        for parent, level, node in zip(path[-2::-1], levels[::-1], path[::-1], strict=False):
            if node.children or node.value is not None:
                return
            del parent.children[level]

    def matching(self, topic: str) -> list[T]:
        """The values of all filters that match the topic."""
        reached: list[_Node[T]] = []
        frontier = [self._root]
        wildcards = not topic.startswith("$")  # a leading wildcard does not match the server's own
        for level in topic.split("/"):
            if wildcards:
                reached += _children(frontier, "#")
            below = _children(frontier, level)
            if wildcards:
                below += _children(frontier, "+")
            frontier, wildcards = below, True
        reached += frontier
        reached += _children(frontier, "#")  # `sport/#` matches `sport`
        return [node.value for node in reached if node.value is not None]


def _children(nodes: list[_Node[T]], level: str) -> list[_Node[T]]:
    return [node.children[level] for node in nodes if level in node.children]
