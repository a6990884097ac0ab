"""How are the files of a trace listed and read? They lie in `<folder>/<table>/**/*.parquet`.

A file appears under its name only when it is whole (written under a hidden name, then renamed), so
a folder can be read at any time. Which of the listed files are read is said by `selection` and by
`intake`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from tidings.core.errors import ConfigError, FileError
from tidings.core.trace import TABLES
from tidings.traces.plain_parquet.empty_tables import EMPTY
from tidings.traces.stored import stored_rows

T = TypeVar("T")

LOOKS = 5  # at a folder whose files are gathered while it is listed


def listed_files(folder: Path) -> dict[str, list[Path]]:
    """All files of each table in the folder that have rows; an error if it is no trace's."""
    if not folder.exists():
        raise FileError(str(folder), os.strerror(errno.ENOENT))
    found = {table: list(parquet_files(folder / table)) for table in TABLES}
    if not any(found.values()) and not any((folder / table / EMPTY).exists() for table in TABLES):
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
    """All whole Parquet files with rows below the folder, sorted; hidden ones are still being
    written.

    A folder is listed before those in it: segments move downwards when they are gathered, so each
    is seen in its old place, in its new one, or in both.
    """
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _is_visible(name)]
        found += [Path(place, n) for n in names if n.endswith(".parquet") and _is_visible(n)]
    return iter(sorted(found))


def read_files(files: Iterator[Path] | list[Path], schema: pa.Schema) -> pa.Table:
    """All rows of these files, with the columns of this schema."""
    tables = []
    for file in files:
        with stored_rows(file) as stored:
            tables.append(stored.read(schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "_")) and name != EMPTY
