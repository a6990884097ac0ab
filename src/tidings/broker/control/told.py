"""What does a broker tell of its clients? What they ask for, and how many ask for the same.

A change is told as the number that holds now, 0 for what nobody asks for any more. Changes wait for
each other, and what comes to nothing in the meantime is not told at all. So what is taken back is
just what was told.
"""

from __future__ import annotations

from tidings.core.contract import Contract, Wish

Asked = tuple[str, str, Contract]  # filter, predicate, contract


class Told:
    """What the others know of this broker's clients, and what they are to hear next."""

    def __init__(self) -> None:
        self._told: dict[Asked, int] = {}
        self._changed: dict[Asked, int] = {}

    def count(self, asked: Asked, number: int) -> None:
        """So many clients ask for it now."""
        self._changed[asked] = number

    def changes(self) -> tuple[Wish, ...]:
        """What changed since the last call."""
        found = []
        for asked, number in self._changed.items():
            if number != self._told.get(asked, 0):
                found.append(wish_of(asked, number))
                if number:
                    self._told[asked] = number
                else:
                    del self._told[asked]
        self._changed.clear()
        return tuple(found)

    def whole(self) -> tuple[Wish, ...]:
        """All that the others were told."""
        return tuple([wish_of(asked, number) for asked, number in self._told.items()])


def wish_of(asked: Asked, number: int) -> Wish:
    topic, where, contract = asked
    return Wish(topic, where, contract, number)
