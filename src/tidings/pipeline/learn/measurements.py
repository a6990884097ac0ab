"""What can be learned from? It is checked before Spark starts, so that mistakes are found at once.

Either a trace folder of level `hops`, or a table of round trips: one Parquet file with a row per
measurement. Bad files of a folder are set aside, as by `tidings analyse` (`traces.intake`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from tidings.core.errors import ConfigError, first_line
from tidings.pipeline.transforms.links.samples import PROBE_TIMEOUT_S
from tidings.traces.intake import Intake, take_in

InputKind = Literal["traces", "table"]
SLICE_S: dict[InputKind, float] = {
    "traces": 10.0,  # two probes of each link, at the default pace
    "table": 60.0,  # a table does not say; as in scenarios/seattle.toml
}
TABLE_COLUMNS = ("slice", "source", "target", "rtt_ms")
TELLING = ("probed", "forwarded")  # the tables of a trace that tell round trips


class Input(Struct, frozen=True):
    """What is learned from, found to be usable before Spark starts."""

    path: Path
    kind: InputKind
    slice_s: float
    hold_back: float
    probe_timeout_s: float  # how long the brokers of a trace waited for the answer to a probe
    intake: Intake | None = None  # of a folder: which files are read

    def size_bytes(self) -> int:
        """Of all files that are read."""
        return self.path.stat().st_size if self.intake is None else self.intake.size_bytes()


def checked_input(
    path: Path, slice_s: float | None, hold_back: float, probe_timeout_s: float = PROBE_TIMEOUT_S
) -> Input:
    """The input, or a `ConfigError` that says what is wrong with it."""
    kind: InputKind = "table" if path.is_file() else "traces"
    if slice_s is not None and not 0 < slice_s < 1e9:
        raise ConfigError("--slice-s", "length of a slice", slice_s, "seconds, above 0")
    if not 0 < hold_back < 1:
        raise ConfigError("--hold-back", "part of the time", hold_back, "between 0 and 1")
    if not 0 < probe_timeout_s < 1e9:
        raise ConfigError("--probe-timeout-s", "timeout", probe_timeout_s, "seconds, above 0")
    given = Input(path, kind, slice_s or SLICE_S[kind], hold_back, probe_timeout_s)
    if kind == "traces":
        return with_files(given, take_in(path))
    _check_table(path)
    return given


def with_files(given: Input, intake: Intake) -> Input:
    """The input, of which these files are read."""
    _check_level(given.path, intake)
    return replace(given, intake=intake)


def _check_table(path: Path) -> None:
    accepted = f"a table of round trips with the columns {', '.join(TABLE_COLUMNS)}"
    try:
        schema, rows = pq.read_schema(path), pq.read_metadata(path).num_rows
    except (pa.ArrowException, OSError) as error:
        problem = first_line(error)
        accepted = f"a whole Parquet file, {accepted}, or a folder of traces"
        raise ConfigError(str(path), "file", problem, accepted) from None
    for column in TABLE_COLUMNS:
        if column not in schema.names:
            found = ", ".join(schema.names) or "none"
            raise ConfigError(str(path), "columns", found, f"{accepted}; {column} is missing")
    if rows == 0:
        raise ConfigError(str(path), "rows", 0, "a table with measurements")
    _check_types(path, {name: schema.field(name).type for name in TABLE_COLUMNS})


def _check_types(path: Path, types: dict[str, pa.DataType]) -> None:
    counts, measures = _is_whole(types["slice"]), pa.types.is_floating(types["rtt_ms"])
    measures = measures or _is_whole(types["rtt_ms"])
    ends = types["source"], types["target"]
    numbered, named = all(map(_is_whole, ends)), all(map(_is_text, ends))
    if not (counts and measures and (numbered or named)):
        found = ", ".join(f"{name} {kind}" for name, kind in types.items())
        accepted = "slice counts, source and target are both numbers or both names, rtt_ms measures"
        raise ConfigError(str(path), "types", found, accepted)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _check_level(folder: Path, intake: Intake) -> None:
    """Something tells round trips; a `ConfigError` says why nothing does."""
    if any(intake.files[table] for table in TELLING):
        return
    for bad in intake.quarantined:
        if bad.table in TELLING:
            accepted = f"a whole file of them, but in {bad.file} {bad.reason}"
            raise ConfigError(str(folder), "probed and forwarded rows", "bad", accepted)
    accepted = (
        'traces of level hops, which tell round trips: set trace = "hops" under [broker] '
        "(or --set broker.trace=hops) and run it again"
    )
    raise ConfigError(str(folder), "level of the traces", "outcomes", accepted)
