"""Which frames of a run were answered, and how long did that take? Its trace rows of level `hops`.

One run of a folder is read, without Spark: the one whose last row is the latest, and of equals the
first by name. A row that is there twice (a copy of a part of a file) counts once. An
acknowledgement answers the last attempt of its transmission, but its round trip counts only if
there was one attempt: it may be meant for an earlier copy (Karn). `tidings learn` reads traces in
the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.core.trace import ORIGIN_COLUMNS, TABLES
from tidings.sim.courses.past import Direction, PastRows
from tidings.traces.files import read_files
from tidings.traces.schemas import arrow_schema
from tidings.traces.selection import trace_files

READ = ("probed", "forwarded", "acknowledged", "link_changed")


def read_past(folder: Path, probe_timeout_s: float) -> PastRows:
    """The latest run of a folder; a `ValueError` or `ConfigError` says why there is none."""
    files = {table: files for table, files in trace_files(folder).items() if table in READ}
    if not files["probed"] and not files["forwarded"]:
        raise ValueError("no probes or transmissions")
    stamps = tuple(
        (table, tuple((str(file), file.stat().st_mtime_ns) for file in found))
        for table, found in files.items()
    )
    return _read(stamps, probe_timeout_s)


@lru_cache(maxsize=2)
def _read(
    stamps: tuple[tuple[str, tuple[tuple[str, int], ...]], ...], probe_timeout_s: float
) -> PastRows:
    """Files that did not change are read once."""
    tables = {
        table: read_files([Path(name) for name, _ in files], arrow_schema(TABLES[table]))
        for table, files in stamps
    }
    run, world = _latest(tables)
    rows = {name: _once(table.filter(pc.field("run") == run)) for name, table in tables.items()}
    instants = [table["recorded_at"].to_numpy() for table in rows.values() if table.num_rows]
    first, last = min(at.min() for at in instants), max(at.max() for at in instants)
    start_at = 0.0 if world == "sim" else float(first)  # virtual time begins at 0
    return PastRows(run, start_at, float(last), _links(rows, probe_timeout_s))


def _links(rows: dict[str, pa.Table], probe_timeout_s: float) -> dict[tuple[str, str], Direction]:
    asked = {
        "probed": _probes(rows["probed"]),
        "forwarded": _transmissions(rows["forwarded"], rows["acknowledged"]),
        "link_changed": rows["link_changed"],
    }
    split = {name: dict(_by_link(table)) for name, table in asked.items()}
    ends = sorted({ends for of_table in split.values() for ends in of_table})
    empty = {name: _columns(table.slice(0, 0)) for name, table in asked.items()}
    return {
        pair: _direction({n: split[n].get(pair, empty[n]) for n in asked}, probe_timeout_s)
        for pair in ends
    }


def _once(table: pa.Table) -> pa.Table:
    """Without what is there twice; in one thread, so that the order is always the same."""
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def _latest(tables: dict[str, pa.Table]) -> tuple[str, str]:
    """The run that ended last, and its world."""
    runs: list[tuple[float, str, str]] = []
    for table in tables.values():
        ends = table.group_by(list(ORIGIN_COLUMNS)).aggregate([("recorded_at", "max")]).to_pylist()
        runs += [(-row["recorded_at_max"], row["run"], row["world"]) for row in ends]
    if not runs:
        raise ValueError("there are no rows")
    _, run, world = min(runs)
    return run, world


def _probes(probed: pa.Table) -> pa.Table:
    """Without those whose round trip is negative (a clock was set back): they show nothing."""
    return probed.filter(_sound() | pc.field("round_trip_s").is_nan())


def _transmissions(forwarded: pa.Table, acknowledged: pa.Table) -> pa.Table:
    """Each attempt, whether it is the last, and the round trip if any was answered."""
    keys, together = ["broker", "neighbour", "transmission"], {"use_threads": False}
    answers = acknowledged.filter(_sound()).group_by(keys, **together)
    attempts = forwarded.group_by(keys, **together).aggregate([("attempt", "max")])
    return forwarded.join(attempts, keys, **together).join(
        answers.aggregate([("round_trip_s", "min")]), keys, **together
    )


def _sound() -> pc.Expression:
    """A time that can have been measured."""
    return (pc.field("round_trip_s") >= 0.0) & (pc.field("round_trip_s") < inf)


Columns = dict[str, npt.NDArray[Any]]


def _columns(table: pa.Table) -> Columns:
    names = [name for name in table.column_names if name not in (*ORIGIN_COLUMNS, "broker")]
    return {n: table[n].to_numpy(zero_copy_only=False) for n in names if n != "neighbour"}


def _by_link(table: pa.Table) -> Iterator[tuple[tuple[str, str], Columns]]:
    """The rows of each direction, in the order of time."""
    if not table.num_rows:
        return
    (source, sources), (target, targets) = map(_coded, (table["broker"], table["neighbour"]))
    at = table["recorded_at"].to_numpy()
    link = source * len(targets) + target
    order = np.lexsort((at, link))
    numbers, starts = np.unique(link[order], return_index=True)
    columns = _columns(table)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        a, b = divmod(number, len(targets))
        yield (sources[a], targets[b]), {name: column[rows] for name, column in columns.items()}


def _coded(names: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The names as numbers, and each name once."""
    encoded = names.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _direction(rows: dict[str, Columns], probe_timeout_s: float) -> Direction:
    probed, sent, changed = rows["probed"], rows["forwarded"], rows["link_changed"]
    echoed = ~np.isnan(probed["round_trip_s"])
    probe_at = probed["recorded_at"] - np.where(echoed, probed["round_trip_s"], probe_timeout_s)
    last = sent["attempt"] == sent["attempt_max"]
    acked = last & ~np.isnan(sent["round_trip_s_min"])
    once = acked & (sent["attempt"] == 1)
    sent_at = np.concatenate((probe_at, sent["recorded_at"]))
    order = np.argsort(sent_at, kind="stable")
    return Direction(
        sent_at[order],
        np.concatenate((echoed, acked))[order],
        probe_at[echoed],
        probed["round_trip_s"][echoed],
        sent["recorded_at"][once],
        sent["round_trip_s_min"][once],
        changed["recorded_at"],
        changed["up"].astype(bool),
    )
