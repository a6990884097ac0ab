"""What columns has a trace table on Spark? Those of its rows: derived, never written by hand."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidings.core.trace import TABLES
from tidings.traces.points import POINT_SCHEMA
from tidings.traces.schemas import arrow_schema

TRACE_TYPES: dict[str, StructType] = {
    table: from_arrow_schema(arrow_schema(row_type)) for table, row_type in TABLES.items()
}
POINT_TYPE: StructType = from_arrow_schema(POINT_SCHEMA)
