"""Segments of live brokers, made by hand: small files with names as `traces.live_files` has
them."""

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.traces import a_delivery, a_publication, tables_of

from tidings.core.trace import Row

AN_HOUR_AGO_S = 3600.0


def write_segment(
    folder: Path, run: str, broker: str, number: int, rows: Iterable[Row], age_s: float = 0.0
) -> list[Path]:
    """One file per table that has rows; they look as old as is said."""
    written = []
    for table, found in tables_of({run: rows}).items():
        if found.num_rows:
            written.append(folder / table / f"{run}-{broker}-{number:06}.parquet")
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(found, written[-1], compression="zstd")
    for file in written:
        at = file.stat().st_mtime - age_s
        os.utime(file, (at, at))
    return written


def a_moment(number: int) -> list[Row]:
    """Two messages that are published and delivered, in this second of the run."""
    rows: list[Row] = []
    for message in (2 * number, 2 * number + 1):
        rows.append(a_publication(message, float(number), ("b2/x:t",)))
        rows.append(a_delivery(message, number + 0.125, "b2/x:t"))
    return rows


def live_folder(folder: Path, run: str = "live", segments: int = 6) -> Path:
    """A run of one broker that wrote these segments an hour ago."""
    for number in range(segments):
        write_segment(folder, run, "b1", number, a_moment(number), AN_HOUR_AGO_S)
    return folder


def rows_in(table: pa.Table) -> list[dict[str, object]]:
    """In an order of their own, to compare what was read from different files."""
    return sorted(table.to_pylist(), key=repr)
