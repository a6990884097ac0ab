"""Does this file hold trace rows, and of which stretch of time?

A look at its footer tells where it stands in the order of time. Its rows are read and checked when
their turn comes.
"""

from __future__ import annotations

import time
from math import isfinite
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.trace import TABLES, arrow_schema
from tidings.traces.files import whole_parquet
from tidings.traces.fingerprints import Fingerprint, content_fingerprints
from tidings.traces.intake import check_columns

# What a watch needs of each table.
ADMITTED = {
    "published": ("run", "at", "message", "topic", "deadline_s", "interested"),
    "delivered": ("run", "at", "message", "age_s", "subscriptions"),
}
AHEAD_S = 300.0  # of this machine's clock; a row from the future would make all others late


class WaitingFile(Struct, frozen=True):
    """A file that waits until it is admitted."""

    name: str  # below the folder of traces
    rows: int
    first_at: float
    last_at: float
    content: frozenset[Fingerprint]  # itself, or what was gathered in it


def _schema(table: str) -> pa.Schema:
    whole = arrow_schema(TABLES[table])
    return pa.schema([whole.field(name) for name in ADMITTED[table]])


# Rows of both tables; what only the other kind has is null.
_EITHER = pa.unify_schemas([_schema(table) for table in ADMITTED])
ROW_SCHEMA = pa.schema([field.with_nullable(True) for field in _EITHER])


def waiting_file(file: Path, name: str, table: str) -> WaitingFile:
    """What a file says of itself; a `ConfigError` if it is not of this table and version."""
    check_columns(table, file)
    with whole_parquet(file):
        footer = pq.read_metadata(file)
        first, last = _instants(footer) or extent(checked_rows(file, table))
        content = content_fingerprints(file)
    return WaitingFile(name, footer.num_rows, first, last, content)


def checked_rows(file: Path, table: str) -> pa.Table:
    """All rows of a file; a `ConfigError` if some cannot be read, or cannot be true."""
    schema = _schema(table)
    with whole_parquet(file), pq.ParquetFile(file) as source:
        rows = source.read(columns=schema.names).select(schema.names).cast(schema)
    first, last = extent(rows)
    for instant in (first, last):
        if not (isfinite(instant) and 0 <= instant <= time.time() + AHEAD_S):
            accepted = f"instants from 0 to {AHEAD_S:g} s ahead of this machine's clock"
            raise ConfigError(str(file), "at", instant, accepted)
    return rows


def _instants(footer: pq.FileMetaData) -> tuple[float, float] | None:
    """The first and last, if the writer has put them in the footer."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(n) for group in groups for n in range(group.num_columns)]
    known = [column.statistics for column in columns if column.path_in_schema == "at"]
    if not known or not all(each is not None and each.has_min_max for each in known):
        return None
    return min(each.min for each in known), max(each.max for each in known)


def extent(rows: pa.Table) -> tuple[float, float]:
    """The first and last instant; NaN if an instant is not finite: NaN has no place in an order."""
    if not rows.num_rows:
        return 0.0, 0.0
    instants = rows["at"]
    if not pc.all(pc.is_finite(instants)).as_py():
        return float("nan"), float("nan")
    span = pc.min_max(instants)
    return span["min"].as_py(), span["max"].as_py()
