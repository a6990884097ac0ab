"""How is a message written in a log, and found there again? As a record behind its length.

A segment is one file: a line that says whose log it is, then records. A record is the length of its
body (4 bytes), the CRC-32 of its body (4 bytes) and the body, MessagePack. What a crash left of a
record fails its length or its checksum, so the good part of a file is what comes before the first
record that fails. Readers get records exactly as they lie on the disk and check them themselves, so
that serving them costs the broker no decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf
from struct import Struct as Packing
from zlib import crc32

import msgspec
from msgspec import Struct

from tidings.core.errors import TidingsError

LENGTH_AND_CHECK = Packing(">II")
RECORD_HEADER_BYTES = LENGTH_AND_CHECK.size
_FIRST_LINE = re.compile(rb"tidings log 1 ([0-9a-f]{32})\n")
FIRST_LINE_BYTES = len(b"tidings log 1 \n") + 32


class LogError(TidingsError):
    """A log that cannot be opened, written or read."""


class Damaged(LogError):
    """Records that were written, and cannot be read any more."""

    def __init__(self, problem: str, resume_at: int) -> None:
        super().__init__(problem)
        self.resume_at = resume_at  # the first offset behind them that may be readable


class LogRecord(Struct, frozen=True, array_like=True, gc=False):
    """A message as the broker that keeps the log received it."""

    offset: int
    at: float  # Unix time, by the clock of that broker
    message: int  # its id
    topic: str
    payload: bytes
    properties: tuple[tuple[str, str], ...] = ()  # MQTT 5 user properties, in their order
    deadline_s: float = inf  # the publisher's; age at which it is late
    price: float = 1.0  # the publisher's
    age_s: float = 0.0  # at the instant `at`


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(LogRecord).decode


def first_line(log_id: str) -> bytes:
    """What a segment begins with."""
    return b"tidings log 1 %s\n" % log_id.encode()


def log_id_in(data: bytes) -> str | None:
    """Whose segment this is; None if it is none, or not whole."""
    match = _FIRST_LINE.match(data)
    return match[1].decode() if match else None


def encode_record(record: LogRecord) -> bytes:
    body = _encode(record)
    return LENGTH_AND_CHECK.pack(len(body), crc32(body)) + body


def whole_records(data: bytes, position: int = 0) -> Iterator[tuple[int, int]]:
    """Where each record starts and ends, as far as they are all there; nothing is checked."""
    end = len(data)
    while position + RECORD_HEADER_BYTES <= end:
        size_bytes, _ = LENGTH_AND_CHECK.unpack_from(data, position)
        stop = position + RECORD_HEADER_BYTES + size_bytes
        if stop > end:
            return
        yield position, stop
        position = stop


def good_bytes(data: bytes, first: int) -> tuple[int, int]:
    """How many bytes of a segment are good, and the offset after its last good record."""
    good, offset = FIRST_LINE_BYTES, first
    for start, stop in whole_records(data, FIRST_LINE_BYTES):
        record = _checked(data, start, stop)
        if record is None or record.offset != offset:
            break
        good, offset = stop, offset + 1
    return good, offset


def decode_records(data: bytes, first: int) -> list[LogRecord]:
    """The records in what a log answered, up to the first that is damaged; that must not be the
    first of all."""
    records: list[LogRecord] = []
    position = 0
    for start, stop in whole_records(data):
        record = _checked(data, start, stop)
        if record is None or record.offset != first + len(records):
            break
        records.append(record)
        position = stop
    if position < len(data) and not records:
        problem = f"the record at offset {first} is damaged"
        raise Damaged(f"{problem}: it is cut off, or does not fit its checksum", first + 1)
    return records


def _checked(data: bytes, start: int, stop: int) -> LogRecord | None:
    _, check = LENGTH_AND_CHECK.unpack_from(data, start)
    body = memoryview(data)[start + RECORD_HEADER_BYTES : stop]
    if crc32(body) != check:
        return None
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None
