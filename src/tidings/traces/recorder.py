"""From rows to Arrow batches and a digest, for a run that is over before anybody reads it.

Rows wait as small structs until a chunk is full and are then turned into columns, so memory does
not grow with a run.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pyarrow as pa
from msgspec import msgpack

from tidings.core.trace import TABLES, Row
from tidings.traces.columns import record_batch
from tidings.traces.schemas import arrow_schema

CHUNK_ROWS = 65536
_TABLE_OF = {row_type: table for table, row_type in TABLES.items()}

Sink = Callable[[str, pa.RecordBatch], None]


class Recorder:
    """Gathers rows and hands them on in Arrow batches, one table each."""

    def __init__(self, run: str, world: str, sink: Sink) -> None:
        self._origin = (run, world)
        self._sink = sink
        self._rows: dict[type[Row], list[Row]] = {row_type: [] for row_type in _TABLE_OF}
        self._schemas = {row_type: arrow_schema(row_type) for row_type in _TABLE_OF}
        self._digest = sha256()

    def record(self, row: Row) -> None:
        rows = self._rows[type(row)]
        rows.append(row)
        if len(rows) >= CHUNK_ROWS:
            self._flush_table(type(row))

    def flush(self) -> None:
        for row_type in _TABLE_OF:
            if self._rows[row_type]:
                self._flush_table(row_type)

    @property
    def digest(self) -> str:
        """What was flushed so far, in 64 characters: equal rows give equal digests anywhere."""
        return self._digest.hexdigest()

    def _flush_table(self, row_type: type[Row]) -> None:
        rows, table = self._rows[row_type], _TABLE_OF[row_type]
        self._rows[row_type] = []
        self._digest.update(msgpack.encode((table, rows)))
        self._sink(table, record_batch(rows, self._schemas[row_type], self._origin))
