"""Which rows are there? The tables of a trace folder as frames, whichever world wrote them.

The files are listed once, when the folder is read: a frame stands for that moment, also while
brokers or a sweep go on writing. Rows of a sweep are told apart by `run`, the name of their point;
`points` says which study, strategy, seed and parameters that was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidings.pipeline.schemas import POINT_TYPE, TRACE_TYPES, check_versions
from tidings.traces.intake import Intake
from tidings.traces.points import finished_points, is_sweep
from tidings.traces.selection import trace_files


class Traces:
    """The trace tables of a folder by name, and the finished points if it is a sweep's."""

    def __init__(self, tables: Mapping[str, DataFrame], points: DataFrame | None = None) -> None:
        self._tables = dict(tables)
        self.points = points

    def __getitem__(self, table: str) -> DataFrame:
        return self._tables[table]


def read_traces(spark: SparkSession, folder: Path, runs: Collection[str] | None = None) -> Traces:
    """All that a folder holds, or only some points of a sweep; tables that nothing was written to
    are empty. One file that cannot be read is an error."""
    return read_intake(spark, folder, all_good(folder, runs))


def all_good(folder: Path, runs: Collection[str] | None = None) -> Intake:
    """The files of a folder, or of some points of a sweep, of which none may be bad."""
    files = trace_files(folder)
    if runs is not None:
        files = {table: [f for f in files[table] if f.stem in runs] for table in files}
    for found in files.values():
        check_versions(found)
    return Intake(files)


def read_intake(spark: SparkSession, folder: Path, intake: Intake) -> Traces:
    """What was found good in a folder."""
    points = None
    if is_sweep(folder):
        points = spark.createDataFrame(finished_points(folder).to_pylist(), POINT_TYPE)
    frames = {t: _frame(spark, files, TRACE_TYPES[t]) for t, files in intake.files.items()}
    return Traces(frames, points)


def _frame(spark: SparkSession, files: list[Path], schema: StructType) -> DataFrame:
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(f"file://{file.absolute()}" for file in files))
