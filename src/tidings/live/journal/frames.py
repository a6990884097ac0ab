"""How is what a store does written down? As frames that say themselves whether they are whole.

A frame is a header and a record in MessagePack. The header has a marker, by which frames are found
again behind a damaged one; the CRC-32 of all that follows it; the frame's serial number, without
gaps, so that a missing frame is noticed; how many messages the store holds after it, and by how
many the frame itself changed that, so that it can be said how many were lost with a missing one;
and the frame's place in its commit, because the last commit before a crash may be incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct as Packing
from zlib import crc32

import msgspec
from msgspec import Struct

from tidings.core.message import Envelope

FORMAT = 2  # 1 was an SQLite file
MARKER = b"\xf5Td\xa7"
_HEADER = Packing(">4sIQIbII")  # marker, check, serial, held, change, place, size of the record
HEADER_BYTES = _HEADER.size
_CHECKED_FROM = 8  # marker and check themselves are not


class Began(Struct, frozen=True, array_like=True, tag=0):
    """The first record of a file."""

    format: int
    store: str  # id: a file of another store is known by it


class Kept(Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A message is held, and owed to the destinations in its envelope, beside those it had."""

    stored_at: float  # Unix time, at which it had the age in its envelope
    envelope: Envelope


class Struck(Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A message is owed no more to these brokers; without any, to nobody, and it is forgotten."""

    message: int
    brokers: tuple[str, ...] = ()


JournalRecord = Began | Kept | Struck

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(JournalRecord).decode


class JournalFrame(Struct, frozen=True, gc=False):
    """A whole frame, and where in its file it is."""

    serial: int
    held: int  # messages, after it
    change: int  # of that number, by it
    place: int  # in its commit
    record: JournalRecord
    start: int
    stop: int


def encode_frame(
    serial: int, held: int, change: int, place: int, record: JournalRecord | bytes
) -> bytes:
    """A frame; a record may be given as it was written before."""
    body = record if type(record) is bytes else _encode(record)
    header = _HEADER.pack(MARKER, 0, serial, held, change, place, len(body))
    check = crc32(body, crc32(header[_CHECKED_FROM:]))
    return header[:4] + check.to_bytes(4, "big") + header[_CHECKED_FROM:] + body


def frames_in(data: bytes) -> Iterator[JournalFrame]:
    """All whole frames; what lies between them is left out, however long it is."""
    position = 0
    while (position := data.find(MARKER, position)) >= 0:
        frame = _frame_at(data, position)
        if frame is not None:
            yield frame
            position = frame.stop
        else:
            position += 1


def _frame_at(data: bytes, start: int) -> JournalFrame | None:
    if start + HEADER_BYTES > len(data):
        return None
    _, check, serial, held, change, place, size_bytes = _HEADER.unpack_from(data, start)
    stop = start + HEADER_BYTES + size_bytes
    if stop > len(data) or crc32(memoryview(data)[start + _CHECKED_FROM : stop]) != check:
        return None
    try:
        record = _decode(memoryview(data)[start + HEADER_BYTES : stop])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return JournalFrame(serial, held, change, place, record, start, stop)
