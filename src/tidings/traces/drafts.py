"""How does a run leave files that are whole or not there at all? As drafts, renamed at the end.

A draft's name begins with a dot, so readers pass it over, and its final name follows from the run
alone: writing it twice replaces it by an equal one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.traces.live_files import renamed


class Drafts:
    """The files of one run while they are being written: `<folder>/<table>/<place>/<name>`."""

    def __init__(self, folder: Path, name: str, place: str = "") -> None:
        self._folder, self._name, self._place = folder, name, place
        self._token = token_hex(4)  # two tries of one run never share a draft
        self._writers: dict[str, pq.ParquetWriter] = {}

    def sink(self, table: str, batch: pa.RecordBatch) -> None:
        """Called by the simulation with rows of a table."""
        draft = self._draft(table)
        with _named(draft):
            if table not in self._writers:
                draft.parent.mkdir(parents=True, exist_ok=True)
                writer = pq.ParquetWriter(draft, batch.schema, compression="zstd")
                self._writers[table] = writer
            self._writers[table].write_batch(batch)

    def keep(self) -> None:
        """All drafts become files, each in one step."""
        for table, writer in self._writers.items():
            with _named(self._draft(table)):
                writer.close()
        for table in self._writers:
            os.replace(self._draft(table), self._final(table))
        self._writers.clear()

    def keep_new(self) -> bool:
        """The same, but nothing that is there is replaced; False if something was."""
        tables = list(self._writers)
        for table in tables:
            with _named(self._draft(table)):
                self._writers[table].close()
        try:
            return all(renamed(self._draft(table), self._final(table)) for table in tables)
        finally:
            self.discard()

    def discard(self) -> None:
        """Drop what was not kept."""
        for table, writer in self._writers.items():
            with suppress(OSError):  # a full disk cannot take the end of a draft either
                writer.close()
            self._draft(table).unlink(missing_ok=True)
        self._writers.clear()

    def _draft(self, table: str) -> Path:
        return self._folder / table / self._place / f".{self._name}-{self._token}.parquet"

    def _final(self, table: str) -> Path:
        return self._draft(table).with_name(f"{self._name}.parquet")


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Arrow says what went wrong with a file (a full disk), but not with which."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(file)) from error
