"""How is a message written in a log, and found there again? As a record after its length.

A segment is one file: a first line with the id of its log, then records. A record is the length of
its body (4 bytes), the CRC-32 of its body (4 bytes) and the body, in MessagePack. A record that a
crash left incomplete does not fit its length or its checksum, so the good part of a file ends
before the first such record. Readers get records as they are on the disk and check them themselves,
so that the broker need not decode them.
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
    """The id of the log whose segment this is; None if it is no segment, or incomplete."""
    match = _FIRST_LINE.match(data)
    return match[1].decode() if match else None


def encode_record(record: LogRecord) -> bytes:
    body = _encode(record)
    return LENGTH_AND_CHECK.pack(len(body), crc32(body)) + body


def whole_records(data: bytes, position: int = 0) -> Iterator[tuple[int, int]]:
    """Where each complete record starts and ends; checksums are not looked at."""
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
    """The records of an answer, up to the first that is damaged; raises if there is none before
    it."""
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
