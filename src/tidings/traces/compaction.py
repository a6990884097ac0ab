"""How do thousands of small segments become a few files, without losing or doubling a row?

A live broker leaves a segment per table every `flush_s`. The segments of one run and table are
gathered in one file, `<table>/run=<run>/gathered-<digest>.parquet`.

Why a crash does no harm
------------------------
There are three steps: the gathered file is written under a hidden name, it is renamed, and then the
segments are removed. The gathered file lists the fingerprints of its segments, and readers pass
over a segment that a gathered file has (`fingerprints`). So rows are read from the segments before
the rename, and from the gathered file after it, whenever the power fails. What a crash leaves over
is removed the next time. No row is rewritten a second time.

Segments of all tables are removed together at the end: an analysis that runs meanwhile then has to
begin again once, and not at every table.

What stays
----------
The newest segment of each broker always stays: a broker that starts again numbers on from there.
So do segments that are younger than `settle_s`, as somebody may just be reading them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.trace import TABLES
from tidings.files.folders import held_alone, onto_disk
from tidings.traces.files import listed_files
from tidings.traces.fingerprints import Fingerprint, fingerprint, gathered_fingerprints, manifest
from tidings.traces.intake import check_pages, take_in
from tidings.traces.schemas import arrow_schema
from tidings.traces.stored import stored_rows, whole_parquet

SETTLE_S = 60.0
FILE_ROWS = 8_000_000  # a gathered file ends with the segment that reaches this
GROUP_ROWS = 262_144  # a row group of a gathered file; as much is in memory at once
LEAST_SEGMENTS = 2  # to gather: one alone is as good as gathered
NUMBERED = re.compile(r"(?P<writer>.+)-(?P<number>\d{6,})\.parquet")  # see `live_files`
LOCK = ".compacting"
ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")  # as Spark does in partitions' names


class Compaction(Struct, frozen=True):
    """What was done."""

    segments: int  # that were gathered
    rows: int
    files: tuple[str, ...]  # that hold them now
    cleared: int  # segments that an earlier compaction had gathered but not removed
    left: int  # segments that stay for now


class _Gathered(Struct, frozen=True):
    file: Path
    segments: list[Path]
    rows: int


def compact(folder: Path, settle_s: float, now: float) -> Compaction:
    """Gather the segments of a folder that have settled; `now` is of the clock of its files."""
    listed_files(folder)  # raises if it is no folder of traces
    busy = f"{folder} is being compacted already; wait until it is."
    with held_alone(folder / LOCK, busy):  # two at once would gather the same segments
        cleared = sum(_clear(folder / table) for table in TABLES)
        done: list[_Gathered] = []
        ready = _ready(folder, now - settle_s)
        for table, segments in ready.items():
            for run, portion in _portions(segments):
                done += _gather(folder / table, run, portion)
        for file in (file for gathered in done for file in gathered.segments):
            file.unlink()
        left = sum(len(_segments(folder / table)) for table in TABLES)
    return Compaction(
        sum(len(gathered.segments) for gathered in done),
        sum(gathered.rows for gathered in done),
        tuple(str(gathered.file) for gathered in done),
        cleared,
        left,
    )


def _clear(place: Path) -> int:
    """Finish what was begun: drafts go, and segments that are safe in a gathered file."""
    for draft in place.glob("run=*/.gathered-*.parquet"):
        draft.unlink()
    gathered = {
        file: gathered_fingerprints(file) for file in place.glob("run=*/gathered-*.parquet")
    }
    holder = {segment: file for file, held in gathered.items() for segment in held}
    sizes = {segment.size_bytes for segment in holder}
    left_over: dict[Path, list[Path]] = {}
    for file in _segments(place):
        if file.stat().st_size in sizes and (found := holder.get(fingerprint(file))):
            left_over.setdefault(found, []).append(file)
    safe = [
        file
        for found, held in left_over.items()
        if _is_readable(place.name, found)
        for file in held
    ]
    for file in safe:
        file.unlink()
    return len(safe)


def _is_readable(table: str, gathered: Path) -> bool:
    """Whether segments may be removed because this file holds their rows. If its rows cannot be
    read, its segments stay; whoever reads the folder names the file."""
    try:
        check_pages(table, gathered)
    except ConfigError:
        return False
    return True


def _ready(folder: Path, settled_at: float) -> dict[str, list[Path]]:
    """Good segments that no broker or reader is busy with, in the order of their numbers."""
    newest = _newest(file for table in TABLES for file in _segments(folder / table))
    return {
        table: [
            file
            for file in sorted(files, key=_number)
            if file.parent == folder / table
            and NUMBERED.fullmatch(file.name)
            and file.name not in newest
            and file.stat().st_mtime <= settled_at
        ]
        for table, files in take_in(folder).files.items()
    }


def _segments(place: Path) -> list[Path]:
    return sorted(f for f in place.glob("[!._]*.parquet") if NUMBERED.fullmatch(f.name))


def _newest(segments: Iterable[Path]) -> set[str]:
    """The last name of each broker, whatever tables it is in."""
    last: dict[str, str] = {}
    for file in sorted(segments, key=_number):
        last[file.name.rpartition("-")[0]] = file.name
    return set(last.values())


def _number(file: Path) -> tuple[str, int]:
    writer, _, number = file.stem.rpartition("-")
    return writer, int(number) if number.isdigit() else 0


def _portions(segments: list[Path]) -> Iterator[tuple[str, list[Path]]]:
    """Segments of one run that make one file."""
    runs: dict[str, list[Path]] = {}
    for file in segments:
        with suppress(ConfigError):  # its rows cannot be read, so it stays: see `_written`
            runs.setdefault(_run_of(file), []).append(file)
    for run, files in sorted(runs.items()):
        portion: list[Path] = []
        rows = 0
        for file in files:
            portion.append(file)
            rows += pq.read_metadata(file).num_rows
            if rows >= FILE_ROWS:
                yield run, portion
                portion, rows = [], 0
        if len(portion) >= LEAST_SEGMENTS:
            yield run, portion


def _run_of(file: Path) -> str:
    """The run whose rows these are: a segment has one."""
    with whole_parquet(file), pq.ParquetFile(file) as rows:
        for batch in rows.iter_batches(1, columns=["run"]):
            return str(batch["run"][0].as_py())
    return ""


def _gather(place: Path, run: str, segments: list[Path]) -> list[_Gathered]:
    """One file in place of many. Each step is on the disk before the next begins."""
    home = place / f"run={ESCAPED.sub(lambda match: f'%{ord(match[0]):02X}', run)}"
    home.mkdir(exist_ok=True)
    onto_disk(place)
    draft = home / f".gathered-{token_hex(4)}.parquet"
    try:
        held, rows = _written(draft, place.name, segments)
        if not held:
            return []
        onto_disk(draft)
        content = sha256("".join(segment.digest for segment in held.values()).encode())
        file = home / f"gathered-{content.hexdigest()[:16]}.parquet"
        os.replace(draft, file)
        onto_disk(home)
    finally:
        draft.unlink(missing_ok=True)
    return [_Gathered(file, list(held), rows)]


def _written(draft: Path, table: str, segments: list[Path]) -> tuple[dict[Path, Fingerprint], int]:
    """Which segments are in the draft, and how many rows that is. A segment whose rows cannot be
    read stays where it is; whoever reads the folder names it."""
    schema, held, rows = arrow_schema(TABLES[table]), {}, 0
    waiting: list[pa.Table] = []
    with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for file in segments:
            content = file.read_bytes()
            try:
                with stored_rows(file, content) as stored:
                    waiting.append(stored.read(schema))
            except ConfigError:
                continue
            held[file] = Fingerprint(len(content), sha256(content).hexdigest())
            rows += waiting[-1].num_rows
            if sum(table.num_rows for table in waiting) >= GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting.clear()
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
        writer.add_key_value_metadata(manifest(held.values()))
    return held, rows
