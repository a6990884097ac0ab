"""Which wishes need not be told, because a wider one is?

Whoever is owed what `sensors/#` matches gets what `sensors/+/heat` matches anyway. So a wish is
left out if another one with the same predicate and contract has a filter that covers its own. Its
number is counted with the wider one: so there may seem to be more takers than there are, never
fewer, and all numbers together are those of all clients.

That is done only where no policy asks how many want a message (`scheduling.COUNTING`).
"""

from __future__ import annotations

from tidings.broker.control.told import Asked, Told
from tidings.core.contract import Contract
from tidings.core.matching.trie import TopicTrie


class _Root:
    """A wish that is told, and those that are counted with it."""

    __slots__ = ("asked", "number", "under")

    def __init__(self, asked: Asked) -> None:
        self.asked, self.number = asked, 0
        self.under: dict[Asked, None] = {}  # itself among them


class Covering:
    """Wishes as they are counted here, passed on to `told` under those that cover them."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._numbers: dict[Asked, int] = {}
        self._roots: dict[Asked, _Root] = {}  # by what is counted with them
        self._tries: dict[tuple[str, Contract], TopicTrie[_Root]] = {}

    def count(self, asked: Asked, number: int) -> None:
        """So many clients ask for it now."""
        before = self._numbers.get(asked, 0)
        if number and not before:
            self._numbers[asked] = number
            self._place(asked)
        elif number:
            self._numbers[asked] = number
            self._add(self._roots[asked], number - before)
        elif before:
            self._end(asked)

    def _place(self, asked: Asked) -> None:
        """Under a wider one, or else to be told, with all that it covers."""
        trie = self._tries.setdefault(asked[1:], TopicTrie())
        root = trie.wider(asked[0])
        if root is None:
            root = _Root(asked)
            for covered in trie.narrower(asked[0]):
                trie.remove(covered.asked[0])
                self._move(covered, root)
            trie.insert(asked[0], root)
        root.under[asked] = None
        self._roots[asked] = root
        self._add(root, self._numbers[asked])

    def _move(self, covered: _Root, root: _Root) -> None:
        for asked in covered.under:
            self._roots[asked] = root
        root.under |= covered.under
        root.number += covered.number
        self._told.count(covered.asked, 0)

    def _end(self, asked: Asked) -> None:
        root, number = self._roots.pop(asked), self._numbers.pop(asked)
        del root.under[asked]
        if root.asked != asked:
            self._add(root, -number)
            return
        self._told.count(asked, 0)
        trie = self._tries[asked[1:]]
        trie.remove(asked[0])
        for orphan in root.under:
            self._place(orphan)
        if trie.is_empty:
            del self._tries[asked[1:]]

    def _add(self, root: _Root, number: int) -> None:
        root.number += number
        self._told.count(root.asked, root.number)
