"""What does a sweep leave about its points? A row for each in the table `points`, besides traces.

A point counts from the moment its row exists: its other files were renamed before. The row of a
point that failed says why, and such a point has no other files.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidings.core.trace import SCHEMA_VERSION
from tidings.traces.files import parquet_files, read_files

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


def is_sweep(folder: Path) -> bool:
    """Whether the folder holds the results of a sweep."""
    return (folder / POINTS).is_dir()


def finished_points(folder: Path) -> pa.Table:
    """The points of a sweep whose rows are whole, in the order of their names."""
    points = read_files(parquet_files(folder / POINTS), POINT_SCHEMA)
    finished = points.filter(pc.equal(points["status"], FINISHED))
    return finished.sort_by([("study", "ascending"), ("point", "ascending")])
