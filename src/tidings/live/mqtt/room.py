"""How much memory may clients take? All of them together a fixed amount.

Counted are messages that a client has not taken yet, packets that are not all there, filters, and
wills. As long as there is room, a client may have as much of it as its own limits allow. When there
is none left, those that have more than an equal share lose messages, or are told that they ask for
too much; so one that takes much cannot harm one that takes little.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class Occupant(Protocol):
    """A client, as seen from here."""

    @property
    def held_bytes(self) -> int: ...


class ClientRoom:
    """The memory of all clients of one broker."""

    def __init__(self, clients: Collection[Occupant], most_bytes: int) -> None:
        self._clients, self._most_bytes = clients, most_bytes
        self._held_bytes = 0  # what is freed is noticed by the next `recount`

    def has_room(self, client: Occupant, more_bytes: int) -> bool:
        """Whether this client may have so much more."""
        if self._held_bytes + more_bytes <= self._most_bytes:
            return True
        share_bytes = self._most_bytes / max(1, len(self._clients))
        return client.held_bytes + more_bytes <= share_bytes

    def taken(self, more_bytes: int) -> None:
        self._held_bytes += more_bytes

    def recount(self) -> None:
        """Called now and then: counting all clients at every packet would take long."""
        self._held_bytes = sum(client.held_bytes for client in self._clients)
