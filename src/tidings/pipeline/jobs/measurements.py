"""What can be learned from? Looked at before Spark starts, so that mistakes are told at once.

Either a trace folder of level `hops`, or a table of round trips: one Parquet file with a row per
measurement.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.pipeline.files import trace_files
from tidings.pipeline.schemas import check_versions

Kind = Literal["traces", "table"]
SLICE_S: dict[Kind, float] = {
    "traces": 10.0,  # two probes of each link, at the default pace
    "table": 60.0,  # a table does not say; as in scenarios/seattle.toml
}
TABLE_COLUMNS = ("slice", "source", "target", "rtt_ms")
TELLING = ("probed", "forwarded")  # the tables of a trace that tell round trips


class Input(Struct, frozen=True):
    """What is learned from, found to be usable before Spark starts."""

    path: Path
    kind: Kind
    slice_s: float
    hold_back: float


def checked_input(path: Path, slice_s: float | None, hold_back: float) -> Input:
    """The input, or a `ConfigError` that says what is wrong with it."""
    kind: Kind = "table" if path.is_file() else "traces"
    if slice_s is not None and not 0 < slice_s < 1e9:
        raise ConfigError("--slice-s", "length of a slice", slice_s, "seconds, above 0")
    if not 0 < hold_back < 1:
        raise ConfigError("--hold-back", "part of the time", hold_back, "between 0 and 1")
    if kind == "table":
        _check_table(path)
    else:
        _check_traces(path)
    return Input(path, kind, slice_s or SLICE_S[kind], hold_back)


def _check_table(path: Path) -> None:
    accepted = f"a table of round trips with the columns {', '.join(TABLE_COLUMNS)}"
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        problem = str(error).strip().partition("\n")[0]
        accepted = f"a whole Parquet file, {accepted}, or a folder of traces"
        raise ConfigError(str(path), "file", problem, accepted) from None
    names = file.schema_arrow.names
    for column in TABLE_COLUMNS:
        if column not in names:
            found = ", ".join(names) or "none"
            raise ConfigError(str(path), "columns", found, f"{accepted}; {column} is missing")
    types = {name: file.schema_arrow.field(name).type for name in ("slice", "rtt_ms")}
    if not (pa.types.is_integer(types["slice"]) and _is_number(types["rtt_ms"])):
        raise ConfigError(
            str(path), "types", ", ".join(map(str, types.values())), "slice counts, rtt_ms measures"
        )
    if file.metadata.num_rows == 0:
        raise ConfigError(str(path), "rows", 0, "a table with measurements")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _check_traces(folder: Path) -> None:
    files = trace_files(folder)
    for found in files.values():
        check_versions(found)
    if not any(files[table] for table in TELLING):
        accepted = (
            'traces of level hops, which tell round trips: set trace = "hops" under [broker] '
            "(or --set broker.trace=hops) and run it again"
        )
        raise ConfigError(str(folder), "level of the traces", "outcomes", accepted)
