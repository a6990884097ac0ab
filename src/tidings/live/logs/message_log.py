"""How are messages kept so that they can be read again? In segments, addressed by offset.

Offsets are consecutive integers from 0, given in the order of arrival. Records wait in memory until
the next `write`, which appends them to the newest segment `<first offset>.log` (and, with `fsync`,
waits for the disk); only then can they be read. So a reader never sees half a record, nor one that
a crash takes back: an offset names the same message for as long as it is kept.

What is lost, and what is removed
---------------------------------
A crash loses the records that waited. A record that was half written is cut off, and counted, when
the log is opened again. A segment is removed as a whole when the log has too many bytes or the
segment is too old; the newest is never removed, so the next offset is always known.

Threads
-------
`append`, `take` and the properties are for the event loop, `write` for one thread, `read` for any.
If the disk cannot be written the log stops for good; what it holds can still be read.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from tidings.core.message import Message
from tidings.files.folders import onto_disk
from tidings.live.logs.files import id_of, locked, segment_path, segments_in
from tidings.live.logs.records import (
    FIRST_LINE_BYTES,
    Damaged,
    LogError,
    LogRecord,
    encode_record,
    first_line,
    good_bytes,
)
from tidings.live.logs.segments import LogSegment, Marks, filling

LOCKED_WITHIN_S = 5.0  # an earlier incarnation that is still ending may hold the log
LEAST_SEGMENTS = 8  # in a full log, so that at most an eighth of it is removed at once
LARGEST_SEGMENT_BYTES = 64 << 20
MAX_WAITING_BYTES = 64 << 20  # if the disk is that far behind, the log stops


class Gone(LogError):
    """An offset that is not kept any more."""


class Ahead(LogError):
    """An offset that nothing was written at yet."""


class MessageLog:
    """One log of one broker, in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        keep_bytes: int,
        keep_s: float,
        fsync: bool = True,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Opens the log, or makes it; nobody else can open it meanwhile."""
        self.folder, self._wall, self._fsync = folder, wall, fsync
        self._keep_bytes, self._keep_s = keep_bytes, keep_s
        self._segment_bytes = min(LARGEST_SEGMENT_BYTES, max(1, keep_bytes // LEAST_SEGMENTS))
        self.stopped = ""  # why nothing is written any more
        self.cut_bytes = 0  # of records that a crash had left unfinished
        self.lost = 0  # messages that came when it had stopped
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._failed = False  # the disk did
        self._segments: tuple[LogSegment, ...] = ()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = locked(folder / "lock", LOCKED_WITHIN_S)
        except OSError as error:
            raise _unusable(folder, error) from None
        try:
            self._open()
        except (OSError, LogError) as error:
            os.close(self._lock)
            raise _unusable(folder, error) from None
        self._next = self.next

    # ---- what is there

    @property
    def id(self) -> str:
        """Differs from the id of a log that is created in the same folder later."""
        return self._id

    @property
    def oldest(self) -> int:
        """The first offset that can be read."""
        return self._segments[0].first

    @property
    def next(self) -> int:
        """One more than the last offset that can be read."""
        return self._segments[-1].next

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def read(self, offset: int, limit: int, limit_bytes: int) -> bytes:
        """Records from this offset on, as many as the limits allow, but one if there is any.

        They end where a segment does: whoever wants more asks again.
        """
        segments = self._segments
        place = bisect_right(segments, offset, key=lambda segment: segment.first) - 1
        if place < 0:
            raise _gone(offset, segments[0].first)
        if offset >= segments[-1].next:
            if offset == segments[-1].next:
                return b""
            raise Ahead(f"offset {offset} is not there yet; the next is {segments[-1].next}")
        try:
            return segments[place].read(offset, limit, limit_bytes)
        except FileNotFoundError:  # removed a moment ago
            raise _gone(offset, self.oldest) from None
        except LogError as error:  # only the damaged record could say where the next begins
            raise Damaged(str(error), segments[place].next) from None

    # ---- what comes

    def append(self, at: float, message: Message, age_s: float) -> None:
        """Takes a message of this age; its offset is given here."""
        if self.stopped:
            self.lost += 1
            return
        data = encode_record(_record(self._next, at, message, age_s))
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self._next += 1
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self.stopped = f"the disk is too slow: {self._waiting_bytes} bytes wait to be written"

    def take(self) -> list[bytes]:
        """What waits, to be handed to `write`."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return waiting

    def write(self, records: list[bytes]) -> None:
        """Everything given is on the disk, and can be read, when this returns; or it has stopped.

        Called without records it still looks for segments that are too old.
        """
        if self._failed:
            self.lost += len(records)
            return
        try:
            self._write(records)
        except OSError as error:
            self._failed = True
            self.lost += len(records)
            self.stopped = f"{self.folder} cannot be written: {error.strerror or error}"
            self._undo()

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)

    def _write(self, records: list[bytes]) -> None:
        segments = list(self._segments)
        while records:
            count = filling(records, self._room_bytes(segments))
            segments[-1] = self._appended(segments[-1], records[:count])
            records = records[count:]
        self._settle(segments)

    def _undo(self) -> None:
        """Removes what nobody could read yet; what cannot be removed is cut at the next start."""
        last = self._segments[-1]
        with suppress(OSError):
            for segment in segments_in(self.folder):
                if segment.first > last.first:
                    segment.path.unlink()
            os.truncate(last.path, last.size_bytes)

    # ---- segments

    def _open(self) -> None:
        """Finds what an earlier incarnation left."""
        found = segments_in(self.folder)
        if not found:
            self._id = uuid4().hex
            self._segments = (self._created(0),)
            return
        whole = [replace(segment, next=after.first) for segment, after in pairwise(found)]
        self._segments = (*whole, self._mended(found))

    def _mended(self, found: list[LogSegment]) -> LogSegment:
        """The newest segment without what a crash left of a record, or of its first line."""
        *others, last = found
        data = last.path.read_bytes()
        if len(data) < FIRST_LINE_BYTES:
            self._id = id_of(others[-1].path) if others else uuid4().hex
            return self._created(last.first)
        self._id = id_of(last.path)
        good, offset = good_bytes(data, last.first)
        self.cut_bytes = len(data) - good
        self._file = os.open(last.path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(self._file, good)
        os.fsync(self._file)  # readers see all of it from now on, so it has to last
        return replace(last, next=offset, size_bytes=good)

    def _created(self, first: int) -> LogSegment:
        path = segment_path(self.folder, first)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o644)
        line = first_line(self._id)
        try:
            write_all(file, line)
            os.fsync(file)  # even without `fsync`: a file without this line is no segment
            onto_disk(self.folder)  # so that the new file's name survives a loss of power
        except OSError:
            os.close(file)
            raise
        self._file, now = file, self._wall()
        return LogSegment(path, first, first, len(line), now, now, Marks(first))

    def _room_bytes(self, segments: list[LogSegment]) -> int:
        """In the newest segment, which is a new one if the last was full."""
        if segments[-1].size_bytes >= self._segment_bytes:
            self._roll(segments)
        return self._segment_bytes - segments[-1].size_bytes

    def _roll(self, segments: list[LogSegment]) -> None:
        os.fsync(self._file)  # even without `fsync`: after a crash only the newest is checked
        finished = self._file
        segments.append(self._created(segments[-1].next))
        os.close(finished)

    def _appended(self, segment: LogSegment, records: list[bytes]) -> LogSegment:
        data = b"".join(records)
        write_all(self._file, data)
        return segment.longer(len(records), len(data), self._wall())

    def _settle(self, segments: list[LogSegment]) -> None:
        """Makes readable what was written, and removes segments that are too old or too many."""
        changed = segments[-1] is not self._segments[-1]
        if changed and self._fsync:
            os.fsync(self._file)
        now, last = self._wall(), segments[-1]
        if last.next > last.first and now - last.started_at > self._keep_s / LEAST_SEGMENTS:
            self._roll(segments)
        total = sum(segment.size_bytes for segment in segments)
        removed = []
        while len(segments) > 1 and (
            total > self._keep_bytes or now - segments[0].touched_at > self._keep_s
        ):
            removed.append(segments.pop(0))
            total -= removed[-1].size_bytes
        self._segments = tuple(segments)
        for segment in removed:
            segment.path.unlink(missing_ok=True)


def _unusable(folder: Path, error: OSError | LogError) -> LogError:
    return LogError(f"{folder} cannot be used: {getattr(error, 'strerror', None) or error}")


def _gone(offset: int, oldest: int) -> Gone:
    return Gone(f"offset {offset} is not kept any more; the oldest is {oldest}")


def write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _record(offset: int, at: float, message: Message, age_s: float) -> LogRecord:
    contract = message.contract
    return LogRecord(
        offset,
        at,
        message.id,
        message.topic,
        message.payload,
        message.properties,
        contract.deadline_s,
        contract.price,
        age_s,
    )
