"""Where in a segment does an offset lie? A few marks, and a walk over lengths from the nearest one.

A mark says at which byte a record begins. Readers leave a mark about every `MARK_BYTES` that they
walk over, so that only the first search for an offset begins at the start of the file. Marks are
kept in memory only; any number of threads may read one segment.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from tidings.live.logs.records import (
    FIRST_LINE_BYTES,
    LENGTH_AND_CHECK,
    RECORD_HEADER_BYTES,
    LogError,
    whole_records,
)

MARK_BYTES = 64 << 10


class Marks:
    """Offsets whose positions are known, shared by all versions of one segment."""

    def __init__(self, first: int) -> None:
        self._offsets, self._positions = [first], [FIRST_LINE_BYTES]
        self._lock = Lock()

    def before(self, offset: int) -> tuple[int, int]:
        """The nearest offset that is known and not beyond this one, and its position."""
        with self._lock:
            place = bisect_right(self._offsets, offset) - 1
            return self._offsets[place], self._positions[place]

    def add(self, offset: int, position: int) -> None:
        with self._lock:
            if offset > self._offsets[-1]:
                self._offsets.append(offset)
                self._positions.append(position)


class LogSegment(Struct, frozen=True):
    """One file of a log, as much of it as can be read."""

    path: Path
    first: int  # offset
    next: int  # offset after its last record
    size_bytes: int
    started_at: float  # Unix time of its first record
    touched_at: float  # and of its last
    marks: Marks

    def longer(self, records: int, size_bytes: int, at: float) -> LogSegment:
        return replace(
            self,
            next=self.next + records,
            size_bytes=self.size_bytes + size_bytes,
            started_at=self.started_at if self.next > self.first else at,
            touched_at=at,
        )

    def read(self, offset: int, limit: int, limit_bytes: int) -> bytes:
        """Records from this offset on, to the end of the segment at most; always one."""
        with self.path.open("rb") as file:
            position = self._find(file, offset)
            data = self._window(file, position, offset, limit_bytes)
        end = 0
        for _, (_, stop) in zip(range(limit), whole_records(data), strict=False):
            end = stop
        return data[:end]

    def _find(self, file: BinaryIO, offset: int) -> int:
        at, position = self.marks.before(offset)
        while at < offset:
            walked = 0
            for _, stop in whole_records(self._window(file, position, at, MARK_BYTES)):
                at, walked = at + 1, stop
                if at == offset:
                    return position + stop
            position += walked
            self.marks.add(at, position)
        return position

    def _window(self, file: BinaryIO, position: int, offset: int, size_bytes: int) -> bytes:
        """What begins at a record: so many bytes, or that record if it has more."""
        end = self.size_bytes
        file.seek(position)
        data = file.read(min(max(size_bytes, RECORD_HEADER_BYTES), end - position))
        if len(data) < RECORD_HEADER_BYTES:
            raise LogError(f"{self.path} is damaged: it ends before offset {offset}")
        needed = RECORD_HEADER_BYTES + LENGTH_AND_CHECK.unpack_from(data)[0]
        if needed > end - position:
            raise LogError(f"{self.path} is damaged at offset {offset}")
        if needed > len(data):
            data += file.read(needed - len(data))
            if len(data) < needed:  # somebody has shortened the file
                raise LogError(f"{self.path} is damaged: it ends within offset {offset}")
        return data


def filling(records: list[bytes], room_bytes: int) -> int:
    """How many of these records fill the room; the last one may overshoot."""
    for count, record in enumerate(records, start=1):
        room_bytes -= len(record)
        if room_bytes <= 0:
            return count
    return len(records)
