"""Which of many topic filters match one topic, or are wider or narrower than another filter?

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

    @property
    def is_empty(self) -> bool:
        return not self._root.children

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

    def wider(self, topic_filter: str) -> T | None:
        """The value of a filter here that matches whatever this one matches, which is not here
        itself; None if there is none."""
        frontier = [self._root]
        wildcards = not topic_filter.startswith("$")
        for level in topic_filter.split("/"):
            if wildcards:
                found = _first_value(_children(frontier, "#"))
                if found is not None:
                    return found
            below = _children(frontier, level)
            if wildcards and level not in ("+", "#"):
                below += _children(frontier, "+")
            frontier, wildcards = below, True
        return _first_value(frontier + _children(frontier, "#"))

    def narrower(self, topic_filter: str) -> list[T]:
        """The values of the filters here that match nothing but what this one matches."""
        frontier, is_first = [self._root], True
        for level in topic_filter.split("/"):
            if level == "#":  # which also stands for no level at all
                return _values(_every_child(frontier, is_first) if is_first else frontier)
            if level == "+":
                frontier = _every_child(frontier, is_first, "#")
            else:
                frontier = _children(frontier, level)
            is_first = False
        return [node.value for node in frontier if node.value is not None]


def _first_value(nodes: list[_Node[T]]) -> T | None:
    for node in nodes:
        if node.value is not None:
            return node.value
    return None


def _every_child(nodes: list[_Node[T]], is_first: bool, but: str | None = None) -> list[_Node[T]]:
    """What a wildcard stands for, but for one level; at the first, not for the server's own."""
    return [
        child
        for node in nodes
        for level, child in node.children.items()
        if level != but and not (is_first and level.startswith("$"))
    ]


def _values(nodes: list[_Node[T]]) -> list[T]:
    """Of these nodes, and of all below them."""
    found, waiting = list[T](), nodes[::-1]
    while waiting:
        node = waiting.pop()
        if node.value is not None:
            found.append(node.value)
        waiting += node.children.values()
    return found


def _children(nodes: list[_Node[T]], level: str) -> list[_Node[T]]:
    return [node.children[level] for node in nodes if level in node.children]
