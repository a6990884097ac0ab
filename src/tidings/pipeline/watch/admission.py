"""Which trace rows does the stream get, and in which order? Checked ones, by time, each once.

Live brokers leave many small segments. A disk may cut one of them off, and a stream that meets its
rows in disorder takes them for late. So files wait until they are admitted.

An admission
------------
The files that are next in time, of both tables together, are checked to the last row and become one
file in a folder that only the stream reads. A file that does not hold trace rows is refused,
counted and named, and the others go on.

Each admission is noted, with what is in it, before its file appears. After a crash the last note is
carried out again under the same name; if the stream has read a file of that name already, it passes
it over. So no row is lost and none is admitted twice. If some of the files are gone by then, a
second note with the same number says what is left, and the second note holds.

Copies and gathered files
-------------------------
Files are known by their content. Copies are passed over, and so are files into which compaction has
gathered what was admitted before; but a name that is used again has rows of its own. A gathered
file of which only a part was admitted is admitted whole, as it does not tell which row is of which
segment. Its rows are then counted again in `rows`, but once in their window, as
`transforms.windows.judged` counts each message once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.files.folders import onto_disk, replaced
from tidings.pipeline.watch.waiting_files import (
    ADMITTED,
    ROW_SCHEMA,
    WaitingFile,
    checked_rows,
    extent,
    waiting_file,
)
from tidings.pipeline.watch.wishes import LatestWishes
from tidings.traces.files import parquet_files
from tidings.traces.fingerprints import Fingerprint, content_fingerprints

OWN_TOPICS = "$tidings/"  # a watch that judged its own messages could go on for ever
NO_RUN = ""  # of rows that only say what time it is
NOTES = "rounds.jsonl"  # in the folder of admissions


class AdmittedFile(Struct, frozen=True):
    """A file that was admitted, by its name below the folder of traces and by its content."""

    name: str
    content: tuple[Fingerprint, ...]


class Admission(Struct, frozen=True):
    """The note of what was admitted together."""

    number: int
    last_at: float  # of all rows so far
    files: tuple[AdmittedFile, ...] = ()


class Admissions:
    """The rows of a trace folder for one stream, which reads `<folder>/rows`."""

    def __init__(
        self, traces: Path, folder: Path, wishes: LatestWishes, warn: Callable[[str], None]
    ) -> None:
        self._traces, self._folder, self._wishes, self._warn = traces, folder, wishes, warn
        self.rows = self.refused = 0
        self.last_at = -1.0  # of all rows; below 0 there was none
        self._waiting: dict[str, WaitingFile] = {}
        self._looked_at: set[str] = set()
        self._copies: set[str] = set()  # of what was admitted, or waits
        self._claimed: set[Fingerprint] = set()  # admitted or waiting
        self._number = 0
        (folder / "rows").mkdir(parents=True, exist_ok=True)
        self._resume()

    def admit(self, most_rows: int, watermark_s: float) -> bool:
        """Admits what is next in time; false if nothing is waiting."""
        self._look()
        chosen = _next(self._waiting.values(), most_rows, watermark_s)
        for file in chosen:
            del self._waiting[file.name]
        files = tuple(AdmittedFile(file.name, tuple(sorted(file.content))) for file in chosen)
        if files:
            self.rows += self._carry_out(self._number + 1, files)
        return bool(files)

    def tell_time(self, at: float) -> None:
        """Admits a row that says nothing but what time it is."""
        row = {"run": NO_RUN, "recorded_at": at, "message": 0, "topic": "", "deadline_s": inf}
        note = Admission(self._number + 1, self.last_at)
        self._note(note)
        self._write(note, [pa.Table.from_pylist([row | {"interested": [""]}], ROW_SCHEMA)])

    def _resume(self) -> None:
        notes = self._folder / NOTES
        whole, _, cut = (notes.read_bytes() if notes.exists() else b"").rpartition(b"\n")
        if cut:  # the crash came while it was written, and before the file of that admission
            replaced(notes, lambda draft: draft.write_bytes(whole + b"\n" if whole else b""))
        noted = [msgspec.json.decode(line, type=Admission) for line in whole.splitlines()]
        by_number = {note.number: note for note in noted}  # of two notes, the later one holds
        for file in (file for note in by_number.values() for file in note.files):
            self._claimed.update(file.content)
            if _is_there(file, self._traces):
                self._looked_at.add(file.name)
        if by_number:
            self._repeat(by_number[max(by_number)])

    def _repeat(self, last: Admission) -> None:
        """Carries out the last note, if that has not been done, with what is still there."""
        self._number, self.last_at = last.number, last.last_at
        if not last.files or _has_rows(self._file_of(last.number)):
            return
        gone = [file for file in last.files if not _is_there(file, self._traces)]
        for file in gone:
            self._give_up(file.content)
        self._carry_out(last.number, tuple(file for file in last.files if file not in gone))

    def _look(self) -> None:
        """Finds new files; of those that cannot be used, says why."""
        for name in [name for name in self._waiting if not (self._traces / name).exists()]:
            self._give_up(self._waiting.pop(name).content)
        found = {
            str(file.relative_to(self._traces)): file
            for table in ADMITTED
            for file in parquet_files(self._traces / table)
        }
        self._looked_at &= found.keys()  # names may come again, with other rows
        for name in [name for name in found if name not in self._looked_at]:
            self._looked_at.add(name)
            self._expect(found[name], name, name.partition("/")[0])

    def _expect(self, file: Path, name: str, table: str) -> None:
        try:
            found = waiting_file(file, name, table)
        except ConfigError as problem:
            self._refuse(file, problem)
            return
        if found.content <= self._claimed:
            self._copies.add(name)
        elif found.rows:
            self._waiting[name] = found
            self._claimed |= found.content

    def _give_up(self, content: Iterable[Fingerprint]) -> None:
        """For files that are gone: they were gathered with others, where they will be found."""
        self._claimed.difference_update(content)
        self._looked_at -= self._copies
        self._copies.clear()

    def _refuse(self, file: Path, problem: ConfigError) -> None:
        if file.exists():  # else see `_give_up`
            self.refused += 1
            self._warn(f"{problem} It is passed over.")

    def _carry_out(self, number: int, planned: tuple[AdmittedFile, ...]) -> int:
        """Reads the files, notes which were good, and gives their rows to the stream."""
        good, parts = list[AdmittedFile](), list[pa.Table]()
        for each in planned:
            table, file = each.name.partition("/")[0], self._traces / each.name
            try:
                rows = checked_rows(file, table)
            except ConfigError as problem:
                self._refuse(file, problem)
                self._give_up(each.content)
            else:
                good.append(each)
                parts.append(self._with_audience(rows) if table == "published" else rows)
        self.last_at = max([self.last_at, *(extent(rows)[1] for rows in parts)])
        kept = Admission(number, self.last_at, tuple(good))
        self._note(kept)
        if parts:
            self._write(kept, parts)
        return sum(rows.num_rows for rows in parts)

    def _with_audience(self, published: pa.Table) -> pa.Table:
        return self._wishes.told(published).drop_columns(["attributes"])

    def _note(self, note: Admission) -> None:
        with (self._folder / NOTES).open("ab") as file:
            file.write(msgspec.json.encode(note) + b"\n")
            file.flush()
            os.fsync(file.fileno())  # before the file of the admission can be seen
        self._number = note.number

    def _write(self, note: Admission, parts: list[pa.Table]) -> None:
        """One file, so that the stream meets what was published and delivered in one batch."""
        rows = pa.concat_tables([ROW_SCHEMA.empty_table(), *parts], promote_options="default")
        ours = pc.fill_null(pc.starts_with(rows["topic"], OWN_TOPICS), False)
        replaced(self._file_of(note.number), partial(_save, rows.filter(pc.invert(ours))))

    def _file_of(self, number: int) -> Path:
        return self._folder / "rows" / f"{number:09}.parquet"


def _is_there(file: AdmittedFile, traces: Path) -> bool:
    """A broker that starts in an emptied folder uses names again, so a name alone tells nothing."""
    try:
        return content_fingerprints(traces / file.name) == set(file.content)
    except OSError:
        return False


def _has_rows(file: Path) -> bool:
    """Whether an admission's file is there, with the columns that the stream asks for: an earlier
    Tidings gave other names to them."""
    return file.exists() and pq.read_schema(file).names == ROW_SCHEMA.names


def _save(rows: pa.Table, draft: Path) -> None:
    pq.write_table(rows, draft, compression="zstd")
    onto_disk(draft)  # a file that has its name is not written again


def _next(waiting: Iterable[WaitingFile], most_rows: int, watermark_s: float) -> list[WaitingFile]:
    """The files that begin first; more than asked for, if the rest would come late otherwise."""
    chosen, rows, reach = list[WaitingFile](), 0, -inf
    for file in sorted(waiting, key=lambda each: (each.first_at, each.name)):
        enough = rows + file.rows > most_rows and file.first_at > reach - watermark_s
        if enough and chosen:
            break
        chosen.append(file)
        rows, reach = rows + file.rows, max(reach, file.last_at)
    return chosen
