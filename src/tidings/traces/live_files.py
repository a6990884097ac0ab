"""How do trace rows reach the disk while Spark may be reading?

In segments: every `flush_s` the rows since the last time become one complete Parquet file per table
under a name that begins with a dot, and are then renamed to `<table>/<run>-<broker>-<number>`. So a
reader sees whole files only, and a crash loses at most the last `flush_s`. No file is overwritten:
a restart goes on numbering where the last one ended, and a number that is taken is passed over (run
`a-b` of broker `c` and run `a` of broker `b-c` share theirs).

The event loop gathers rows and makes them columns, a chunk at a time; one thread writes, in order.
If the disk takes no more, or no column can hold a value, rows are lost and counted; the broker goes
on.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from threading import Thread
from zlib import crc32

from tidings.core.trace import TABLES, Row
from tidings.traces.plain_parquet.empty_tables import write_empty_table
from tidings.traces.plain_parquet.table import PlainTable

CHUNK_ROWS = 512  # made into columns at once, which takes a quarter of a millisecond
SEGMENT_ROWS = 262_144  # a segment ends early when it has this many: about 20 MB of columns
MAX_WAITING_SEGMENTS = 8  # if the disk is that far behind, rows are given up
STOP_WITHIN_S = 30.0
UNFIT = (ValueError, TypeError, OverflowError)  # a value that no column holds

Segment = dict[str, PlainTable]  # by table


def check_writable(folder: Path) -> None:
    """Raises an OSError or ValueError if traces cannot be written there; makes the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):  # rights alone do not tell: the file system may refuse
        pass


class TraceFiles:
    """The trace of one broker. Rows are appended to `rows`, each to the list of its type."""

    def __init__(self, folder: Path, run: str, broker: str) -> None:
        self.rows: dict[type[Row], list[Row]] = {row_type: [] for row_type in TABLES.values()}
        self.lost_rows = 0
        self._origin = (run, "live")
        self._kinds = [(table, self.rows[kind]) for table, kind in TABLES.items()]
        self._segment: Segment = {}
        self._segment_rows = 0
        self._waiting: SimpleQueue[Segment | None] = SimpleQueue()
        self._folder, self._writer = folder, _Writer(folder, run, broker)
        self._thread = Thread(target=self._write_segments, name="trace", daemon=True)
        self._thread.start()

    def relieve(self) -> None:
        """Called at the end of each round: makes columns of rows where there are many."""
        for table, rows in self._kinds:
            if len(rows) >= CHUNK_ROWS:
                self._convert(table, rows)
        if self._segment_rows >= SEGMENT_ROWS:
            self._end_segment()

    def flush(self) -> None:
        """Called every `flush_s`: what was recorded until now becomes readable."""
        for table, rows in self._kinds:
            if rows:
                self._convert(table, rows)
        if self._segment_rows:
            self._end_segment()

    def close(self) -> None:
        """Everything recorded is on disk when this returns."""
        self.flush()
        self._waiting.put(self._segment)  # what a slow disk left over
        self._waiting.put(None)
        self._thread.join(STOP_WITHIN_S)
        if self.lost_rows:
            _warn(f"{self.lost_rows} trace rows were lost in all")

    def _convert(self, table: str, rows: list[Row]) -> None:
        if table not in self._segment:
            self._segment[table] = PlainTable(TABLES[table], self._origin)
        try:
            self._segment[table].add(rows)
        except UNFIT as error:
            self._lose(len(rows), f"{table}: {error}")
        else:
            self._segment_rows += len(rows)
        rows.clear()

    def _end_segment(self) -> None:
        """Hands the segment to the thread, or lets it grow while the disk is behind."""
        if self._waiting.qsize() < MAX_WAITING_SEGMENTS:
            self._waiting.put(self._segment)
        elif self._segment_rows >= SEGMENT_ROWS:
            self._lose(self._segment_rows, "the disk is too slow")
        else:
            return
        self._segment, self._segment_rows = {}, 0

    def _write_segments(self) -> None:
        for table in TABLES:
            with suppress(OSError):  # what is wrong with the disk is said when rows are lost
                write_empty_table(self._folder, table)
        while (segment := self._waiting.get()) is not None:
            for table, rows in segment.items():
                try:
                    self._writer.write(table, rows)
                except OSError as error:
                    self._lose(rows.num_rows, str(error))
            self._writer.number += 1

    def _lose(self, count: int, problem: str) -> None:
        if not self.lost_rows:
            _warn(f"trace rows cannot be written and are lost, the broker goes on: {problem}")
        self.lost_rows += count


class _Writer:
    """Files that appear whole, under numbers that were never used."""

    def __init__(self, folder: Path, run: str, broker: str) -> None:
        self._folder = folder
        self._prefix = f"{run_prefix(run)}{_plain(broker)}-"
        # Drafts are of one broker only, as no name has an underscore: others may be writing theirs.
        self._draft_prefix = f".{_plain(run)}_{_plain(broker)}-"
        for draft, _ in self._numbered(self._draft_prefix):  # the remains of a crash
            draft.unlink(missing_ok=True)
        self.number = max((n for _, n in self._numbered(self._prefix)), default=-1) + 1

    def write(self, table: str, rows: PlainTable) -> None:
        if not rows.num_rows:
            return
        folder = self._folder / table
        draft = folder / f"{self._draft_prefix}{self.number:06}.parquet"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with draft.open("wb") as file:
                file.writelines(rows.file())
            while not renamed(draft, folder / f"{self._prefix}{self.number:06}.parquet"):
                self.number += 1
        finally:
            draft.unlink(missing_ok=True)

    def _numbered(self, prefix: str) -> list[tuple[Path, int]]:
        """The files of all tables with this prefix and a number, which is all of their name."""
        name = re.compile(re.escape(prefix) + r"(\d+)\.parquet")
        found = self._folder.glob(f"*/{prefix}*.parquet")
        return [(path, int(match[1])) for path in found if (match := name.fullmatch(path.name))]


def run_prefix(run: str) -> str:
    """How the names of all segments of a run begin; those of another run may begin so, too."""
    return f"{_plain(run)}-"


def renamed(draft: Path, final: Path) -> bool:
    """Whether the draft got the name; it does not if a file has that name already."""
    try:
        os.link(draft, final)  # renaming would replace what is there
    except FileExistsError:
        return False
    except OSError:  # a file system without links: two writers at the same moment may both go on
        if final.exists():
            return False
        os.replace(draft, final)
    return True


def _plain(name: str) -> str:
    """The name as part of a file name; two different names stay different."""
    plain = re.sub(r"[^A-Za-z0-9.-]", "-", name)
    return plain if plain == name else f"{plain}.{crc32(name.encode()):08x}"


def _warn(problem: str) -> None:
    print(f"tidings: {problem}", file=sys.stderr, flush=True)
