"""How are the files of a trace listed and read? They lie in `<folder>/<table>/**/*.parquet`.

A file appears under its name only when it is whole (written under a hidden name, then renamed), so
a folder can be read at any time. Which of the listed files are read is said by `selection` and by
`intake`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.errors import ConfigError, FileError, first_line
from tidings.core.trace import SCHEMA_VERSION, TABLES

T = TypeVar("T")

LOOKS = 5  # at a folder whose files are gathered while it is listed


def listed_files(folder: Path) -> dict[str, list[Path]]:
    """All files of each table in the folder; an error if there is none at all."""
    if not folder.exists():
        raise FileError(str(folder), os.strerror(errno.ENOENT))
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


def parquet_files(folder: Path) -> Iterator[Path]:
    """All whole Parquet files below the folder, sorted; hidden ones are still being written.

    A folder is listed before those in it: segments move downwards when they are gathered, so each
    is seen in its old place, in its new one, or in both.
    """
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _is_visible(name)]
        found += [Path(place, n) for n in names if n.endswith(".parquet") and _is_visible(n)]
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
        problem = first_line(error)
        accepted = "a whole Parquet file of trace rows"
        raise ConfigError(str(file), "file", problem, accepted) from None


def check_version(file: Path, metadata: Mapping[bytes, bytes] | None) -> None:
    """Rows of another version may mean something else, so they are not read."""
    version = (metadata or {}).get(b"tidings", b"none").decode()
    if version != str(SCHEMA_VERSION):
        accepted = f"traces of version {SCHEMA_VERSION}; run the simulation or sweep again"
        raise ConfigError(str(file), "the version of its trace rows", version, accepted)


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "_"))
