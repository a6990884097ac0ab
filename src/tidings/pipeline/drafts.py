"""How does a run leave files that are whole or not there at all? As drafts, renamed at the end.

A draft's name begins with a dot, so readers pass it over, and its final name follows from the run
alone: writing it twice replaces it by an equal one.
"""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
import pyarrow.parquet as pq


class Drafts:
    """The files of one run while they are being written: `<folder>/<table>/<place>/<name>`."""

    def __init__(self, folder: Path, name: str, place: str = "") -> None:
        self._folder, self._name, self._place = folder, name, place
        self._token = token_hex(4)  # two tries of one run never share a draft
        self._writers: dict[str, pq.ParquetWriter] = {}

    def sink(self, table: str, batch: pa.RecordBatch) -> None:
        """Called by the simulation with rows of a table."""
        if table not in self._writers:
            self._draft(table).parent.mkdir(parents=True, exist_ok=True)
            writer = pq.ParquetWriter(self._draft(table), batch.schema, compression="zstd")
            self._writers[table] = writer
        self._writers[table].write_batch(batch)

    def keep(self) -> None:
        """All drafts become files, each in one step."""
        for writer in self._writers.values():
            writer.close()
        for table in self._writers:
            draft = self._draft(table)
            os.replace(draft, draft.with_name(f"{self._name}.parquet"))
        self._writers.clear()

    def discard(self) -> None:
        """Drop what was not kept."""
        for table, writer in self._writers.items():
            writer.close()
            self._draft(table).unlink(missing_ok=True)
        self._writers.clear()

    def _draft(self, table: str) -> Path:
        return self._folder / table / self._place / f".{self._name}-{self._token}.parquet"
