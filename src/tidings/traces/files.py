"""Where do trace rows lie? `<folder>/<table>/**/*.parquet`, from both worlds and from sweeps.

A file appears under its name only when it is whole (written under a hidden name, then renamed), so
a folder can be read at any time. In a sweep's folder a point counts from the moment its row in
`points` exists: files of a point that was killed halfway are passed over. Files there are named by
the digest of what made them, so a point that two studies share is read once. Elsewhere a file is
known by its content (`traces.fingerprints`), and a copy is not read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.errors import ConfigError
from tidings.core.trace import SCHEMA_VERSION, TABLES
from tidings.traces.fingerprints import distinct

T = TypeVar("T")

LOOKS = 5  # at a folder whose files are gathered while it is listed

POINTS = "points"
FINISHED = "finished"
FAILED = "failed"

# One row per point of a sweep: what it was, how it went, and what it left.
POINT_SCHEMA = pa.schema(
    [
        pa.field("study", pa.string(), nullable=False),
        pa.field("point", pa.string(), nullable=False),  # the scenario's digest; `run` in its rows
        pa.field("scenario", pa.string(), nullable=False),  # the file
        pa.field("strategy", pa.string(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("parameters", pa.string(), nullable=False),  # JSON: what the grid set
        pa.field("status", pa.string(), nullable=False),  # finished, failed
        pa.field("error", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),  # of the rows
        pa.field("seconds", pa.float64(), nullable=False),  # it took
        pa.field("publications", pa.int64(), nullable=False),
        pa.field("deliveries", pa.int64(), nullable=False),
        pa.field("hops", pa.int64(), nullable=False),
    ],
    metadata={"tidings": str(SCHEMA_VERSION)},
)


def trace_files(folder: Path) -> dict[str, list[Path]]:
    """The files of each table that hold every row once; a `ConfigError` if there is none at all."""
    if (folder / POINTS).is_dir():
        names = set(finished_points(folder).column("point").to_pylist())
        return {table: _of_points(files, names) for table, files in listed_files(folder).items()}
    return settled(
        lambda: {table: _each_row_once(files) for table, files in listed_files(folder).items()}
    )


def listed_files(folder: Path) -> dict[str, list[Path]]:
    """All files of each table in the folder; a `ConfigError` if there is none at all."""
    found = {table: list(parquet_files(folder / table)) for table in TABLES}
    if not any(found.values()):
        accepted = (
            "a folder with traces: <folder>/published/*.parquet and so on, as written by "
            "`tidings simulate --traces`, `tidings sweep` and `tidings up`"
        )
        state = "a folder without traces" if folder.is_dir() else "not a folder"
        raise ConfigError(str(folder), "traces", state, accepted)
    return found


def settled(look: Callable[[], T]) -> T:
    """What a look at the files gives, once none of them vanishes in the middle of it."""
    for _ in range(LOOKS - 1):
        try:
            return look()
        except FileNotFoundError:
            continue
    return look()


def finished_points(folder: Path) -> pa.Table:
    """The points of a sweep whose rows are whole, in the order of their names."""
    points = read_files(parquet_files(folder / POINTS), POINT_SCHEMA)
    finished = points.filter(pa.compute.equal(points["status"], FINISHED))
    return finished.sort_by([("study", "ascending"), ("point", "ascending")])


def parquet_files(folder: Path) -> Iterator[Path]:
    """All whole Parquet files below the folder, sorted; hidden ones are still being written.

    A folder is listed before those in it: segments move downwards when they are gathered, so each
    is seen in its old place, in its new one, or in both.
    """
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _is_shown(name)]
        found += [Path(place, n) for n in names if n.endswith(".parquet") and _is_shown(n)]
    return iter(sorted(found))


def read_files(files: Iterator[Path] | list[Path], schema: pa.Schema) -> pa.Table:
    """All rows of these files, which must be of this schema's version."""
    tables = []
    for file in files:
        with whole_parquet(file):
            rows = pq.ParquetFile(file).read()
            check_version(file, rows.schema.metadata)
            if missing := [name for name in schema.names if name not in rows.column_names]:
                raise ValueError(f"it has no column {missing[0]}")
            tables.append(rows.select(schema.names).cast(schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


@contextmanager
def whole_parquet(file: Path) -> Iterator[None]:
    """Whatever the reader finds wrong with the file is said with the file's name."""
    try:
        yield
    except (pa.ArrowException, ValueError, OSError) as error:
        problem = str(error).strip().partition("\n")[0]
        accepted = "a whole Parquet file of trace rows"
        raise ConfigError(str(file), "file", problem, accepted) from None


def check_version(file: Path, metadata: Mapping[bytes, bytes] | None) -> None:
    """Rows of another version may mean something else, so they are not read."""
    version = (metadata or {}).get(b"tidings", b"none").decode()
    if version != str(SCHEMA_VERSION):
        accepted = f"traces of version {SCHEMA_VERSION}; run the simulation or sweep again"
        raise ConfigError(str(file), "the version of its trace rows", version, accepted)


def _each_row_once(files: list[Path]) -> list[Path]:
    kept, left_out = distinct(files)
    for twice in left_out:
        if twice.shared:
            accepted = f"files without common rows; it shares {twice.shared} with {twice.other}"
            raise ConfigError(str(twice.file), "segments", "gathered twice", accepted)
    return kept


def _is_shown(name: str) -> bool:
    return not name.startswith((".", "_"))


def _of_points(files: list[Path], names: set[str]) -> list[Path]:
    return list({file.stem: file for file in files if file.stem in names}.values())
