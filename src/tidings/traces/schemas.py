"""What columns has a trace table in Arrow? Those of its rows: derived, never written by hand."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa
from msgspec.structs import fields

from tidings.core.trace import ORIGIN_COLUMNS, SCHEMA_VERSION, Row

_ARROW = {float: pa.float64(), int: pa.int64(), str: pa.string(), bool: pa.bool_()}


def arrow_schema(row_type: type[Row]) -> pa.Schema:
    """The Arrow schema of a row type, derived from its annotations."""
    hints = get_type_hints(row_type)
    columns = [pa.field(name, pa.string(), nullable=False) for name in ORIGIN_COLUMNS]
    columns += [
        pa.field(f.name, _arrow_type(hints[f.name]), nullable=False) for f in fields(row_type)
    ]
    return pa.schema(columns, metadata={"tidings": str(SCHEMA_VERSION)})


def _arrow_type(hint: Any) -> pa.DataType:
    if get_origin(hint) is tuple:  # the item's name is Parquet's, so that all readers agree on it
        return pa.list_(pa.field("element", _ARROW[get_args(hint)[0]], nullable=False))
    return _ARROW[hint]
