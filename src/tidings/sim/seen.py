"""Which messages are done with? A bit for each, so that a long run does not run out of memory.

A broker numbers its messages one after the other (`core.message_ids`), so the bits of one
broker are a row: a million messages take 125 kilobytes, where a set of their ids takes sixty times
as much.
"""

from __future__ import annotations

from tidings.core.message_ids import SERIAL_BITS

GROWTH_BYTES = 1024  # at a time
_SERIAL_MASK = (1 << SERIAL_BITS) - 1


class Seen:
    """A set of message ids that only grows."""

    def __init__(self) -> None:
        self._rows: dict[int, bytearray] = {}

    def add(self, message: int) -> None:
        serial = message & _SERIAL_MASK
        row = self._rows.setdefault(message >> SERIAL_BITS, bytearray())
        byte = serial >> 3
        if byte >= len(row):
            row.extend(bytes(byte + GROWTH_BYTES - len(row)))
        row[byte] |= 1 << (serial & 7)

    def __contains__(self, message: int) -> bool:
        row, serial = self._rows.get(message >> SERIAL_BITS), message & _SERIAL_MASK
        byte = serial >> 3
        return row is not None and byte < len(row) and bool(row[byte] >> (serial & 7) & 1)
