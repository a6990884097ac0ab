"""Which questions did a run's links answer? Its trace rows of level `hops`, read without Spark.

One run of a folder is read: the one whose last row is the latest, and of equals the first by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from tidings.core.silences import Flags, Instants
from tidings.core.trace import ORIGIN_COLUMNS, SCHEMA_VERSION, TABLES, arrow_schema

READ = ("probed", "forwarded", "acknowledged", "link_changed")


class Direction(Struct, frozen=True):
    """One direction of a link, in the order of time."""

    sent_at: Instants  # of every frame that was to be answered
    answered: Flags
    probe_at: Instants  # of the frames whose round trip is known
    probe_s: Instants
    message_at: Instants
    message_s: Instants
    changed_at: Instants
    up: Flags


class PastRows(Struct, frozen=True):
    """One run."""

    run: str
    start_at: float
    end_at: float
    links: dict[tuple[str, str], Direction]


def read_past(folder: Path, probe_timeout_s: float) -> PastRows:
    """The latest run of a folder; a `ValueError` says why there is none."""
    files = {table: _files(folder / table) for table in READ}
    stamp = tuple((str(f), f.stat().st_mtime_ns) for found in files.values() for f in found)
    if not files["probed"] and not files["acknowledged"]:
        raise ValueError('no probes or acknowledgements; run it with [broker] trace = "hops"')
    return _read(stamp, str(folder), probe_timeout_s)


def _files(folder: Path) -> list[Path]:
    """Whole files; hidden ones are still being written."""
    found = sorted(folder.rglob("*.parquet"))
    return [f for f in found if not any(p[0] in "._" for p in f.relative_to(folder).parts)]


@lru_cache(maxsize=2)
def _read(stamp: tuple[tuple[str, int], ...], folder: str, probe_timeout_s: float) -> PastRows:
    tables = {table: _table(Path(folder), table) for table in READ}
    run, world = _latest(tables)
    rows = {name: table.filter(pc.equal(table["run"], run)) for name, table in tables.items()}
    instants = [table["at"].to_numpy() for table in rows.values() if table.num_rows]
    first, last = min(at.min() for at in instants), max(at.max() for at in instants)
    start_at = 0.0 if world == "sim" else float(first)  # virtual time begins at 0
    split = {name: dict(_by_link(table)) for name, table in rows.items()}
    ends = sorted({ends for of_table in split.values() for ends in of_table})
    empty = {name: _columns(table.slice(0, 0)) for name, table in rows.items()}
    links = {
        pair: _direction({n: split[n].get(pair, empty[n]) for n in READ}, probe_timeout_s)
        for pair in ends
    }
    return PastRows(run, start_at, float(last), links)


def _table(folder: Path, table: str) -> pa.Table:
    schema = arrow_schema(TABLES[table])
    parts = []
    for file in _files(folder / table):
        found = pq.ParquetFile(file).read()
        version = (found.schema.metadata or {}).get(b"tidings", b"none").decode()
        if version != str(SCHEMA_VERSION):
            raise ValueError(f"{file} has rows of version {version}, read is {SCHEMA_VERSION}")
        parts.append(found.select(schema.names).cast(schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _latest(tables: dict[str, pa.Table]) -> tuple[str, str]:
    """The run that ended last, and its world."""
    runs: list[tuple[float, str, str]] = []
    for table in tables.values():
        ends = table.group_by(list(ORIGIN_COLUMNS)).aggregate([("at", "max")]).to_pylist()
        runs += [(-row["at_max"], row["run"], row["world"]) for row in ends]
    if not runs:
        raise ValueError("there are no rows")
    _, run, world = min(runs)
    return run, world


Columns = dict[str, npt.NDArray[Any]]


def _columns(table: pa.Table) -> Columns:
    names = [name for name in table.column_names if name not in (*ORIGIN_COLUMNS, "broker")]
    return {n: table[n].to_numpy(zero_copy_only=False) for n in names if n != "neighbour"}


def _by_link(table: pa.Table) -> Iterator[tuple[tuple[str, str], Columns]]:
    """The rows of each direction, in the order of time; a row that is there twice counts once."""
    if not table.num_rows:
        return
    names = pa.array(table["broker"].to_pylist()), pa.array(table["neighbour"].to_pylist())
    (source, sources), (target, targets) = map(_coded, names)
    at = table["at"].to_numpy()
    link = source * len(targets) + target
    order = np.lexsort((at, link))
    numbers, starts = np.unique(link[order], return_index=True)
    columns = _columns(table)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        a, b = divmod(number, len(targets))
        yield (sources[a], targets[b]), {name: column[rows] for name, column in columns.items()}


def _coded(names: pa.Array) -> tuple[npt.NDArray[np.int64], list[str]]:
    encoded = names.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _direction(rows: dict[str, Columns], probe_timeout_s: float) -> Direction:
    probe_s, message_s = rows["probed"]["round_trip_s"], rows["acknowledged"]["round_trip_s"]
    told = np.isfinite(probe_s) & (probe_s >= 0)
    probe_at = rows["probed"]["at"] - np.where(told, probe_s, probe_timeout_s)
    message_at = rows["acknowledged"]["at"] - message_s
    acked = np.isin(rows["forwarded"]["transmission"], rows["acknowledged"]["transmission"])
    lost_at = rows["forwarded"]["at"][~acked]
    sent_at = np.concatenate((probe_at, message_at, lost_at))
    answered = np.concatenate((told, np.ones(message_at.size, bool), np.zeros(lost_at.size, bool)))
    order = np.argsort(sent_at, kind="stable")
    repeated = rows["forwarded"]["transmission"][rows["forwarded"]["attempt"] > 1]
    once = ~np.isin(rows["acknowledged"]["transmission"], repeated) & (message_s >= 0)
    changed = rows["link_changed"]
    return Direction(
        sent_at[order],
        answered[order],
        probe_at[told],
        probe_s[told],
        message_at[once],
        message_s[once],
        changed["at"],
        changed["up"].astype(bool),
    )
