"""Which files of a trace folder can be believed? One bad file does not cost the others.

A file is quarantined if it is cut off, foreign, of a version to come or without one of its columns:
it stays where it is, is not read, and is named with the reason. So is a copy, as its rows are read
once. If nothing good is left, the first of these problems is an error.

In a sweep's folder a bad file is always an error. A point without one of its tables would look like
a run that went badly, and the point can simply run again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.trace import SCHEMA_VERSION, TABLES
from tidings.traces.files import listed_files, settled
from tidings.traces.fingerprints import without_repeated_rows
from tidings.traces.points import is_sweep
from tidings.traces.schemas import arrow_schema
from tidings.traces.selection import trace_files
from tidings.traces.stored import stored_rows, whole_parquet

Check = Callable[[str, Path], int]  # the version of a file's rows; or raises a ConfigError


class Quarantined(Struct, frozen=True):
    """A file that was not read."""

    table: str
    file: str
    reason: str


class Intake(Struct, frozen=True):
    """What will be read of a folder, and what will not."""

    files: dict[str, list[Path]]
    quarantined: tuple[Quarantined, ...] = ()
    older: dict[Path, int] = {}  # versions of those files that are not of today's

    def size_bytes(self) -> int:
        """Of what is still there: a file may have been gathered meanwhile."""
        size_bytes = 0
        for file in (file for files in self.files.values() for file in files):
            with suppress(FileNotFoundError):
                size_bytes += file.stat().st_size
        return size_bytes


def take_in(folder: Path) -> Intake:
    """The files to read, looked at without reading their rows: about 0.2 ms a file."""
    return _taken_in(folder, check_columns)


def read_through(folder: Path) -> Intake:
    """The same after reading all rows, for when a footer promised what the pages do not keep.

    Files are sorted out anew: what was left out as a copy of a bad file is now read itself.
    """
    return _taken_in(folder, _check_rows)


def check_columns(table: str, file: Path) -> int:
    """The version of a file with rows of this table; a `ConfigError` says what it has instead."""
    with stored_rows(file) as stored:
        for field in arrow_schema(TABLES[table]):
            _check_field(table, file, field, stored.type_of(field))
        return stored.version


def check_pages(table: str, file: Path) -> None:
    """Every row can be read."""
    with whole_parquet(file), pq.ParquetFile(file) as rows:
        for _ in rows.iter_batches():
            pass


def _check_rows(table: str, file: Path) -> int:
    version = check_columns(table, file)
    check_pages(table, file)
    return version


def _taken_in(folder: Path, check: Check) -> Intake:
    if is_sweep(folder):
        files, older = trace_files(folder), dict[Path, int]()
        for table, found in files.items():
            for file in found:
                _note_older(older, file, check(table, file))
        return Intake(files, older=older)
    return settled(lambda: _sorted_out(folder, check))


def _sorted_out(folder: Path, check: Check) -> Intake:
    sound = _checked(listed_files(folder), check)
    files, quarantined = {}, list(sound.quarantined)
    for table, found in sound.files.items():
        files[table], left_out = without_repeated_rows(found)
        quarantined += [Quarantined(table, str(each.file), each.reason()) for each in left_out]
    return Intake(files, tuple(quarantined), sound.older)


def _checked(files: dict[str, list[Path]], check: Check) -> Intake:
    """Those that pass; if none does, the first problem is an error."""
    kept: dict[str, list[Path]] = {table: [] for table in files}
    problems, quarantined, older = list[ConfigError](), list[Quarantined](), dict[Path, int]()
    for table, found in files.items():
        for file in found:
            try:
                version = check(table, file)
            except ConfigError as problem:
                file.stat()  # one that was gathered meanwhile is not bad, but no longer there
                problems.append(problem)
                quarantined.append(Quarantined(table, str(file), _reason(problem)))
            else:
                kept[table].append(file)
                _note_older(older, file, version)
    if problems and not any(kept.values()):
        raise problems[0]
    return Intake(kept, tuple(quarantined), older)


def _note_older(older: dict[Path, int], file: Path, version: int) -> None:
    if version < SCHEMA_VERSION:
        older[file] = version


def _check_field(table: str, file: Path, field: pa.Field, kind: pa.DataType | None) -> None:
    if kind is None:
        accepted = f"the columns of `{table}`"
        raise ConfigError(str(file), f"column {field.name}", "missing", accepted)
    if _plain(kind) != _plain(field.type):
        raise ConfigError(str(file), f"column {field.name}", str(kind), f"{field.type}")


def _plain(kind: pa.DataType) -> tuple[str, str]:
    """The type, without whether items of a list may be null: in that, writers differ."""
    return ("list", str(kind.value_type)) if pa.types.is_list(kind) else ("", str(kind))


def _reason(problem: ConfigError) -> str:
    """What is wrong, without the file's name, which stands beside it."""
    return f"{problem.field} is {problem.value!r}, but accepted is: {problem.accepted}"
