"""How is a store's journal kept? Appended to, checked when it is opened, written anew when it pays.

One commit is one write and one wait for the disk. A journal of which most has been struck out is
compacted: what is still held is written to a new file that takes the place of the old one.

A journal that is damaged, or whose end is missing, is never deleted: it is kept under another name,
what could be read goes into a new one, and `reports` says what was lost. A journal that is gone is
noticed by the file that says how far it was written (`committed`), and the other way round.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from uuid import uuid4

from tidings.core.errors import TidingsError
from tidings.files.folders import onto_disk
from tidings.live.journal.committed import Committed, CommittedFile, decode_committed
from tidings.live.journal.frames import (
    FORMAT,
    HEADER_BYTES,
    Began,
    JournalRecord,
    Kept,
    Struck,
    encode_frame,
)
from tidings.live.journal.recovery import HeldMessage, recover
from tidings.live.journal.reports import StoreFiles, reports
from tidings.live.logs.message_log import write_all

LEAST_COMPACTED_BYTES = 4 << 20  # a smaller file is not worth the work
COMPACTED_PART = 4  # one that has so many times the bytes of what it still holds
PREPARED_BYTES = 256 << 10  # of zeros, written ahead
CHUNK_BYTES = 1 << 20  # written at once when a journal is compacted

_wait_for_disk = getattr(os, "fdatasync", os.fsync)  # not every system has the quicker one
_Places = dict[int, list[tuple[int, int]]]  # where frames start and stop, by the message held


class NoJournal(TidingsError):
    """A file that this version of Tidings has not written."""


class Journal:
    """One journal, open for appending. Whoever opens it holds a lock, so it is the only one."""

    def __init__(self, path: Path) -> None:
        """Opens the journal, or makes it; `reports` says what is wrong with it."""
        self.path, self._note_path = path, path.with_suffix(".committed")
        self._frames: list[bytes] = []  # of the next commit
        self._frames_bytes = 0
        self._places: _Places = {}
        self._prepared_bytes = 0  # written to or beyond
        self._compact_at_bytes = LEAST_COMPACTED_BYTES
        files = self._find()
        found, self.reports = files.found, reports(files)
        self.recovered: dict[int, HeldMessage] = found.messages
        self._store = found.began.store if found.began else uuid4().hex
        self._first, self._last, self._size_bytes = found.first, found.last, found.size_bytes
        if files.note_is_damaged:
            self._tell_aside(_kept_aside(self._note_path))
            self._note_path.unlink()
        if files.journal_is_damaged:
            self._tell_aside(_kept_aside(path))
        if found.began is None or files.journal_is_damaged:
            self._replace(self._draft((id, [held.whole()]) for id, held in found.messages.items()))
        else:
            self._take_up()
        self._note = CommittedFile(self._note_path)
        self._tell_committed()
        self._note.sync()
        onto_disk(path.parent)

    def __contains__(self, message: int) -> bool:
        """Whether the journal holds this message, with all that was appended."""
        return message in self._places

    # ---- writing

    def keep(self, kept: Kept) -> None:
        """A message is held from the next commit on, or for more destinations than before."""
        message = kept.envelope.message.id
        held = message in self._places
        place = self._append(kept, 0 if held else 1)
        self._places.setdefault(message, []).append(place)
        self._live_bytes += place[1] - place[0]

    def strike(self, message: int, brokers: tuple[str, ...] = ()) -> None:
        """A message that is held is owed no more to these; without any, it is forgotten."""
        place = self._append(Struck(message, brokers), 0 if brokers else -1)
        if brokers:
            self._places[message].append(place)
            self._live_bytes += place[1] - place[0]
        else:
            self._live_bytes -= sum(stop - start for start, stop in self._places.pop(message))

    def commit(self) -> None:
        """All that was appended is on the disk when this returns."""
        data = b"".join(self._frames)
        try:
            self._write(data)
            _wait_for_disk(self._file)
        except OSError:
            with suppress(OSError):  # nobody was told of these frames; another start ignores them
                os.ftruncate(self._file, self._size_bytes)
            raise
        self._frames.clear()
        self._frames_bytes = 0
        self._size_bytes += len(data)
        self._tell_committed()
        if self._size_bytes >= max(self._compact_at_bytes, COMPACTED_PART * self._live_bytes):
            self._compact()

    def close(self) -> None:
        """Releases the files; what was not committed is not there."""
        with suppress(OSError):  # the journal itself is on the disk
            self._note.sync()
        self._note.close()
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        """Behind the last commit. A file that grows each time makes the disk write its size each
        time, so zeros are written ahead now and then, if there is room."""
        end = self._size_bytes + len(data)
        if end > self._prepared_bytes:
            with suppress(OSError):
                os.pwrite(self._file, bytes(PREPARED_BYTES), end)
            self._prepared_bytes = end + PREPARED_BYTES
        os.lseek(self._file, self._size_bytes, os.SEEK_SET)
        write_all(self._file, data)

    def _append(self, record: JournalRecord, change: int) -> tuple[int, int]:
        """Where the frame of this record will start and stop."""
        self._last += 1
        held = len(self._places) + change
        frame = encode_frame(self._last, held, change, len(self._frames), record)
        start = self._size_bytes + self._frames_bytes
        self._frames.append(frame)
        self._frames_bytes += len(frame)
        return start, start + len(frame)

    def _tell_committed(self) -> None:
        self._note.write(Committed(self._store, self._first, self._last, len(self._places)))

    # ---- opening

    def _find(self) -> StoreFiles:
        data, note = _content(self.path), _content(self._note_path)
        committed = decode_committed(note) if note is not None else None
        found = recover(data or b"", committed)
        if found.began and committed and found.began.store != committed.store:
            found = recover(data or b"", None)  # another store's word is worth nothing here
        if found.began and found.began.format != FORMAT:
            raise NoJournal("it is a store of another version of Tidings")
        if data and found.size_bytes == 0 and committed is None:
            raise NoJournal("it is not a store of this version of Tidings")
        exist = data is not None, note is not None
        return StoreFiles(self.path, exist[0], self._note_path, exist[1], committed, found)

    def _take_up(self) -> None:
        """Goes on with the file that is there, without what a crash left unfinished."""
        self._file = os.open(self.path, os.O_RDWR)
        os.ftruncate(self._file, self._size_bytes)
        os.fsync(self._file)
        self._places = {message: held.places for message, held in self.recovered.items()}
        self._live_bytes = _size_bytes(self._places)

    def _tell_aside(self, kept_as: Path) -> None:
        self.reports.append(f"the damaged file is kept as {kept_as}")

    # ---- a new file with what is still held

    def _compact(self) -> None:
        """Removes what was struck out. If there is no room for that, the old file stays."""
        try:
            with mmap(self._file, self._size_bytes, access=ACCESS_READ) as old:
                draft = self._draft(
                    (message, [old[start + HEADER_BYTES : stop] for start, stop in places])
                    for message, places in self._places.items()
                )
        except OSError:
            self._compact_at_bytes = 2 * self._size_bytes
            return
        os.close(self._file)
        self._replace(draft)
        self._tell_committed()
        self._compact_at_bytes = LEAST_COMPACTED_BYTES

    def _draft(self, held: Iterable[tuple[int, list[JournalRecord | bytes]]]) -> _Draft:
        """A file with these records of messages, on the disk under a name of its own."""
        draft = _Draft(self.path.with_suffix(".draft"), self._last + 1)
        try:
            draft.add(Began(FORMAT, self._store))
            for message, records in held:
                for record in records:
                    draft.add(record, message)
            draft.finish()
        except OSError:
            draft.discard()
            raise
        return draft

    def _replace(self, draft: _Draft) -> None:
        """The draft takes the journal's place in one step."""
        os.replace(draft.path, self.path)
        onto_disk(self.path.parent)
        self._file, self._places = draft.file, draft.places
        self._first, self._last, self._size_bytes = draft.first, draft.last, draft.size_bytes
        self._live_bytes, self._prepared_bytes = _size_bytes(self._places), 0


class _Draft:
    """A journal that is being written anew. It is on the disk before anybody relies on it, so each
    of its frames counts as a commit of its own."""

    def __init__(self, path: Path, first: int) -> None:
        self.path, self.first, self.last, self.size_bytes = path, first, first - 1, 0
        self.places: _Places = {}
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self.file = os.open(path, flags, 0o644)

    def add(self, record: JournalRecord | bytes, message: int | None = None) -> None:
        change = 0 if message is None or message in self.places else 1
        self.last += 1
        frame = encode_frame(self.last, len(self.places) + change, change, 0, record)
        start, self.size_bytes = self.size_bytes, self.size_bytes + len(frame)
        if message is not None:
            self.places.setdefault(message, []).append((start, self.size_bytes))
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)
        if self._waiting_bytes >= CHUNK_BYTES:
            self._write()

    def finish(self) -> None:
        self._write()
        os.fsync(self.file)

    def discard(self) -> None:
        os.close(self.file)
        with suppress(OSError):
            self.path.unlink()

    def _write(self) -> None:
        write_all(self.file, b"".join(self._waiting))
        self._waiting, self._waiting_bytes = [], 0


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _kept_aside(path: Path) -> Path:
    """Gives a file a second name, by which it is found when the first has gone to another."""
    for number in count(1):
        aside = path.with_name(f"{path.name}.damaged-{number}")
        with suppress(FileExistsError):
            os.link(path, aside)
            return aside
    raise AssertionError("numbers do not end")


def _size_bytes(places: _Places) -> int:
    return sum(stop - start for frames in places.values() for start, stop in frames)
