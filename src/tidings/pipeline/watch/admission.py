"""Which trace rows does a stream get, and in which order? Whole and true ones, by time, each once.

Brokers leave many small segments, some disk may cut one, and a stream that meets its rows in
disorder takes them for late. So segments are admitted in rounds: those that are next in time, both
tables together, checked to the last row, become one file in a folder that only the stream reads. A
file that is no segment is refused, counted and named, and the others go on.

Each round is noted, with what was in it, before its file appears. After a crash the last note is
carried out again under the same name, which a stream that has read it passes over: so no row is
lost and none is admitted twice. If segments are gone by then, a second note of that number says
what is left, and holds.

Segments are known by their content: copies, and files into which compaction has gathered what was
admitted before, are passed over, while a name that is used again has rows of its own. A gathered
file of which only a part was admitted is admitted whole, as it does not tell which rows are of
which segment; rows that come again are counted again in `rows`, but once in their window, as
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
    Segment,
    checked_rows,
    extent,
    glance,
)
from tidings.traces import fingerprints as copies
from tidings.traces.files import parquet_files

OWN_TOPICS = "$tidings/"  # a watch that judged its own messages could go on for ever
NO_RUN = ""  # of rows that only say how late it is

Warn = Callable[[str], None]


class Noted(Struct, frozen=True):
    """A file that was admitted, by its name below the folder of traces and by its content."""

    name: str
    content: tuple[copies.Segment, ...]


class Round(Struct, frozen=True):
    """What was admitted together."""

    number: int
    last_at: float  # of all rows so far
    files: tuple[Noted, ...] = ()


class Rounds:
    """The rows of a trace folder for one stream, which reads `<folder>/rows`."""

    def __init__(self, traces: Path, folder: Path, warn: Warn) -> None:
        self._traces, self._folder, self._warn = traces, folder, warn
        self.rows = self.refused = 0
        self.last_at = -1.0  # of all rows; below 0 there was none
        self._waiting: dict[str, Segment] = {}
        self._looked_at: set[str] = set()
        self._copies: set[str] = set()  # of what was admitted, or waits
        self._claimed: set[copies.Segment] = set()  # admitted or waiting
        self._number = 0
        (folder / "rows").mkdir(parents=True, exist_ok=True)
        self._resume()

    def admit(self, most_rows: int, watermark_s: float) -> bool:
        """Whether there was anything for a next round."""
        self._look()
        chosen = _next(self._waiting.values(), most_rows, watermark_s)
        for segment in chosen:
            del self._waiting[segment.name]
        files = tuple(Noted(s.name, tuple(sorted(s.content))) for s in chosen)
        if files:
            self.rows += self._carry_out(self._number + 1, files)
        return bool(files)

    def tell_time(self, at: float) -> None:
        """Admits a row that says nothing but how late it is."""
        row = {"run": NO_RUN, "at": at, "message": 0, "topic": "", "deadline_s": inf}
        note = Round(self._number + 1, self.last_at)
        self._note(note)
        self._write(note, [pa.Table.from_pylist([row | {"interested": [""]}], ROW_SCHEMA)])

    def _resume(self) -> None:
        notes = self._folder / "rounds.jsonl"
        whole, _, cut = (notes.read_bytes() if notes.exists() else b"").rpartition(b"\n")
        if cut:  # the crash came while it was written, and before any file of that round
            replaced(notes, lambda draft: draft.write_bytes(whole + b"\n" if whole else b""))
        noted_rounds = [msgspec.json.decode(line, type=Round) for line in whole.splitlines()]
        rounds = {each.number: each for each in noted_rounds}  # of two notes, the later one holds
        for noted in (noted for each in rounds.values() for noted in each.files):
            self._claimed.update(noted.content)
            if _is_there(noted, self._traces):
                self._looked_at.add(noted.name)
        if rounds:
            self._repeat(rounds[max(rounds)])

    def _repeat(self, last: Round) -> None:
        """Carries out the last round, if that has not been done, with what is still there."""
        self._number, self.last_at = last.number, last.last_at
        if not last.files or self._file_of(last.number).exists():
            return
        gone = [noted for noted in last.files if not _is_there(noted, self._traces)]
        for noted in gone:
            self._give_up(noted.content)
        self._carry_out(last.number, tuple(noted for noted in last.files if noted not in gone))

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
            segment = glance(file, name, table)
        except ConfigError as problem:
            self._refuse(file, problem)
            return
        if segment.content <= self._claimed:
            self._copies.add(name)
        elif segment.rows:
            self._waiting[name] = segment
            self._claimed |= segment.content

    def _give_up(self, content: Iterable[copies.Segment]) -> None:
        """What is no longer there has been gathered with others; there it will be found."""
        self._claimed.difference_update(content)
        self._looked_at -= self._copies
        self._copies.clear()

    def _refuse(self, file: Path, problem: ConfigError) -> None:
        if file.exists():  # else see `_give_up`
            self.refused += 1
            self._warn(f"{problem} It is passed over.")

    def _carry_out(self, number: int, planned: tuple[Noted, ...]) -> int:
        """Reads the segments, notes which were good, and gives them to the stream."""
        good, parts = list[Noted](), list[pa.Table]()
        for noted in planned:
            table, file = noted.name.partition("/")[0], self._traces / noted.name
            try:
                parts.append(checked_rows(file, table))
            except ConfigError as problem:
                self._refuse(file, problem)
                self._give_up(noted.content)
            else:
                good.append(noted)
        self.last_at = max([self.last_at, *(extent(rows)[1] for rows in parts)])
        kept = Round(number, self.last_at, tuple(good))
        self._note(kept)
        if parts:
            self._write(kept, parts)
        return sum(rows.num_rows for rows in parts)

    def _note(self, note: Round) -> None:
        with (self._folder / "rounds.jsonl").open("ab") as file:
            file.write(msgspec.json.encode(note) + b"\n")
            file.flush()
            os.fsync(file.fileno())  # before the round's file can be seen
        self._number = note.number

    def _write(self, note: Round, parts: list[pa.Table]) -> None:
        """One file, so that the stream meets what was published and delivered in one batch."""
        rows = pa.concat_tables([ROW_SCHEMA.empty_table(), *parts], promote_options="default")
        ours = pc.fill_null(pc.starts_with(rows["topic"], OWN_TOPICS), False)
        replaced(self._file_of(note.number), partial(_save, rows.filter(pc.invert(ours))))

    def _file_of(self, number: int) -> Path:
        return self._folder / "rows" / f"{number:09}.parquet"


def _is_there(noted: Noted, traces: Path) -> bool:
    """A broker that starts in an emptied folder uses names again, so a name alone tells nothing."""
    try:
        return copies.content_of(traces / noted.name) == set(noted.content)
    except OSError:
        return False


def _save(rows: pa.Table, draft: Path) -> None:
    pq.write_table(rows, draft, compression="zstd")
    onto_disk(draft)  # a file that has its name is not written again


def _next(waiting: Iterable[Segment], most_rows: int, watermark_s: float) -> list[Segment]:
    """The segments that begin first; more than asked for, if the rest would come late otherwise."""
    chosen, rows, reach = list[Segment](), 0, -inf
    for segment in sorted(waiting, key=lambda each: (each.first_at, each.name)):
        enough = rows + segment.rows > most_rows and segment.first_at > reach - watermark_s
        if enough and chosen:
            break
        chosen.append(segment)
        rows, reach = rows + segment.rows, max(reach, segment.last_at)
    return chosen
