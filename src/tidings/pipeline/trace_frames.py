"""Which rows are there? The tables of a trace folder as frames, whichever world wrote them.

The files are listed once, when the folder is read: a frame stands for that moment, also while
brokers or a sweep go on writing. Rows of a sweep are told apart by `run`, the name of their point;
`points` says which study, strategy, seed and parameters that was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from tidings.core.trace import SCHEMA_VERSION
from tidings.pipeline.schemas import POINT_TYPE, TRACE_TYPES
from tidings.traces.intake import Intake
from tidings.traces.points import finished_points, is_sweep
from tidings.traces.selection import trace_files
from tidings.traces.stored import ADDED_IN_2, TEXT_IN_4, older_versions, stored_names


class Traces:
    """The trace tables of a folder by name, and the finished points if it is a sweep's."""

    def __init__(self, tables: Mapping[str, DataFrame], points: DataFrame | None = None) -> None:
        self._tables = dict(tables)
        self.points = points

    def __getitem__(self, table: str) -> DataFrame:
        return self._tables[table]

    def in_one_partition(self) -> Traces:
        """The same rows, each table in one partition: few rows are joined and counted sooner so."""
        tables = {name: frame.coalesce(1) for name, frame in self._tables.items()}
        return Traces(tables, None if self.points is None else self.points.coalesce(1))


def read_traces(spark: SparkSession, folder: Path, runs: Collection[str] | None = None) -> Traces:
    """All that a folder holds, or only some points of a sweep; tables that nothing was written to
    are empty. One file that cannot be read is an error."""
    return read_intake(spark, folder, all_good(folder, runs))


def all_good(folder: Path, runs: Collection[str] | None = None) -> Intake:
    """The files of a folder, or of some points of a sweep, of which none may be bad."""
    files = trace_files(folder)
    if runs is not None:
        files = {table: [f for f in files[table] if f.stem in runs] for table in files}
    return Intake(files, older=older_versions(f for found in files.values() for f in found))


def read_intake(spark: SparkSession, folder: Path, intake: Intake) -> Traces:
    """What was found good in a folder."""
    points = None
    if is_sweep(folder):
        points = spark.createDataFrame(finished_points(folder).to_pylist(), POINT_TYPE)
    frames = {
        table: _frame(spark, _by_version(files, intake.older), TRACE_TYPES[table])
        for table, files in intake.files.items()
    }
    return Traces(frames, points)


def _by_version(files: list[Path], older: Mapping[Path, int]) -> dict[int, list[Path]]:
    found: dict[int, list[Path]] = {}
    for file in files:
        found.setdefault(older.get(file, SCHEMA_VERSION), []).append(file)
    return found


def _frame(spark: SparkSession, files: Mapping[int, list[Path]], schema: StructType) -> DataFrame:
    if not files:
        return spark.createDataFrame([], schema)
    frames = [_of_version(spark, found, schema, version) for version, found in files.items()]
    return reduce(DataFrame.unionByName, frames)


def _of_version(
    spark: SparkSession, files: list[Path], schema: StructType, version: int
) -> DataFrame:
    """The rows of these files under today's names."""
    stored = stored_names(schema.names, version)
    lists = TEXT_IN_4 if version < 4 else {}
    kept = [
        StructField(
            stored[f.name],
            ArrayType(StringType()) if f.name in lists else f.dataType,
            f.nullable,
        )
        for f in schema
        if f.name in stored
    ]
    paths = [f"file://{file.absolute()}" for file in files]
    rows = spark.read.schema(StructType(kept)).parquet(*paths)
    if version == SCHEMA_VERSION:
        return rows
    return rows.select(
        *(
            _today(F.col(stored[field.name]), field.name in lists).alias(field.name)
            if field.name in stored
            else F.lit(ADDED_IN_2[field.name]).cast(field.dataType).alias(field.name)
            for field in schema
        )
    )


def _today(column: Column, was_list: bool) -> Column:
    """A column whose lists are a text today, as JSON."""
    return F.to_json(column) if was_list else column
