"""What columns has a trace table on Spark? Those of its rows: derived, never written by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidings.core.trace import TABLES, arrow_schema
from tidings.traces.files import check_version, whole_parquet
from tidings.traces.points import POINT_SCHEMA

TRACE_TYPES: dict[str, StructType] = {
    table: from_arrow_schema(arrow_schema(row_type)) for table, row_type in TABLES.items()
}
POINT_TYPE: StructType = from_arrow_schema(POINT_SCHEMA)


def check_versions(files: list[Path]) -> None:
    """All files hold rows of this version; about 0.1 ms a file, as only footers are read."""
    for file in files:
        with whole_parquet(file):
            check_version(file, pq.read_metadata(file).metadata)
