"""How does a table that has no rows yet say which columns it has? By a file without rows.

A trace has one in the folder of each table, `<table>/empty.parquet`, however many brokers write to
it. So pandas, DuckDB and Spark can read every table by its folder. Our own readers pass it over.
"""

from __future__ import annotations

from pathlib import Path

from tidings.core.trace import TABLES
from tidings.files.folders import replaced
from tidings.traces.plain_parquet.table import PlainTable

EMPTY = "empty.parquet"


def write_empty_tables(folder: Path) -> None:
    """The files of all tables that are not there yet."""
    for table in TABLES:
        write_empty_table(folder, table)


def write_empty_table(folder: Path, table: str) -> None:
    """One of them; writers at the same moment write the same bytes."""
    file = folder / table / EMPTY
    if not file.exists():
        replaced(file, lambda draft: draft.write_bytes(b"".join(PlainTable(TABLES[table]).file())))
