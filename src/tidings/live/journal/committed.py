"""How far was a journal written? A second file says it, so that a journal cannot lose its end
unnoticed.

It is overwritten after each commit of the journal, never before, and without waiting for the disk:
a killed process leaves it exact, and a loss of power leaves it at worst a little behind, which
accuses nobody wrongly.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct as Packing
from zlib import crc32

from msgspec import Struct

_FIELDS = Packing(">16s16sQQI")  # magic, id of the store, first serial, last serial, messages held
_CHECK_BYTES = 4
_MAGIC = b"tidings commit 2"
SIZE_BYTES = _FIELDS.size + _CHECK_BYTES


class Committed(Struct, frozen=True):
    """What a journal contained after its last commit."""

    store: str  # id, 32 hexadecimal digits
    first: int  # serial number of the first frame in the file
    last: int  # and of the last
    held: int  # messages

    def encoded(self) -> bytes:
        data = _FIELDS.pack(_MAGIC, bytes.fromhex(self.store), self.first, self.last, self.held)
        return data + crc32(data).to_bytes(_CHECK_BYTES, "big")


def decode_committed(data: bytes) -> Committed | None:
    """None if this was never written like that."""
    fields, check = data[: _FIELDS.size], data[_FIELDS.size :]
    if len(data) != SIZE_BYTES or crc32(fields).to_bytes(_CHECK_BYTES, "big") != check:
        return None
    magic, store, first, last, held = _FIELDS.unpack(fields)
    return Committed(store.hex(), first, last, held) if magic == _MAGIC else None


class CommittedFile:
    """The file that says it, open for writing."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)

    def write(self, committed: Committed) -> None:
        os.pwrite(self._file, committed.encoded(), 0)

    def sync(self) -> None:
        """Returns when it is on the disk."""
        os.ftruncate(self._file, SIZE_BYTES)  # whatever was there before
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)
