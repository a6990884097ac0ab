"""Ids that no two messages share, without asking anybody: serial numbers in one's own block."""

from __future__ import annotations

from hashlib import blake2b

SERIAL_BITS = 32
_SERIALS = 1 << SERIAL_BITS


def first_id(broker: str, incarnation: int, block: int = 0, life: str = "") -> int:
    """The first of a block of 2^32 message ids that no other broker or incarnation uses.

    A `life` that was drawn at random tells lives apart that have the same incarnation. The upper 31
    bits are a hash: among a thousand brokers alive at once two share a block with a probability of
    1 in 4,000, and then only messages of equal serial could be mistaken.
    """
    owner = "\x1f".join([broker, str(incarnation), str(block)] + [life] * bool(life))
    digest = blake2b(owner.encode(), digest_size=4).digest()
    return (int.from_bytes(digest, "big") >> 1) << SERIAL_BITS


class MessageIds:
    """The ids one broker gives out."""

    def __init__(self, broker: str, incarnation: int, life: str = "") -> None:
        self._broker, self._life = broker, life
        self._next = self._end = 0
        self.begin(incarnation)

    def begin(self, incarnation: int) -> None:
        """Go on with ids of this incarnation: those of the last one may have been given before."""
        self._incarnation, self._block = incarnation, -1
        self._next_block()

    def take(self) -> int:
        taken = self._next
        self._next = taken + 1
        if self._next == self._end:
            self._next_block()
        return taken

    def _next_block(self) -> None:
        self._block += 1
        self._next = first_id(self._broker, self._incarnation, self._block, self._life)
        self._end = self._next + _SERIALS
