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
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.trace import TABLES
from tidings.traces.audience import INTERESTED
from tidings.traces.fingerprints import Fingerprint, content_fingerprints
from tidings.traces.intake import check_columns
from tidings.traces.schemas import arrow_schema
from tidings.traces.stored import stored_rows

# What a watch needs of each table.
ADMITTED = {
    "published": ("run", "recorded_at", "message", "topic", "deadline_s", "attributes"),
    "delivered": ("run", "recorded_at", "message", "age_s", "subscriptions"),
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


# Rows of both tables, with the audience of publications in place of what it follows from; what only
# the other kind has is null.
_GIVEN = _schema("published").append(pa.field("interested", INTERESTED))
_PUBLISHED = _GIVEN.remove(_GIVEN.get_field_index("attributes"))
_EITHER = pa.unify_schemas([_PUBLISHED, _schema("delivered")])
ROW_SCHEMA = pa.schema([field.with_nullable(True) for field in _EITHER])


def waiting_file(file: Path, name: str, table: str) -> WaitingFile:
    """What a file says of itself; a `ConfigError` if it is not of this table and version."""
    check_columns(table, file)
    with stored_rows(file) as stored:
        first, last = stored.extent("recorded_at") or extent(checked_rows(file, table))
        rows, content = stored.footer.num_rows, content_fingerprints(file)
    return WaitingFile(name, rows, first, last, content)


def checked_rows(file: Path, table: str) -> pa.Table:
    """All rows of a file; a `ConfigError` if some cannot be read, or cannot be true."""
    with stored_rows(file) as stored:
        rows = stored.read(_schema(table))
    first, last = extent(rows)
    for instant in (first, last):
        if not (isfinite(instant) and 0 <= instant <= time.time() + AHEAD_S):
            accepted = f"instants from 0 to {AHEAD_S:g} s ahead of this machine's clock"
            raise ConfigError(str(file), "recorded_at", instant, accepted)
    return rows


def extent(rows: pa.Table) -> tuple[float, float]:
    """The first and last instant; NaN if an instant is not finite: NaN has no place in an order."""
    if not rows.num_rows:
        return 0.0, 0.0
    instants = rows["recorded_at"]
    if not pc.all(pc.is_finite(instants)).as_py():
        return float("nan"), float("nan")
    span = pc.min_max(instants)
    return span["min"].as_py(), span["max"].as_py()
