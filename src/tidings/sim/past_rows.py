"""Which questions did a run's links answer? Its trace rows of level `hops`, read without Spark.

One run of a folder is read: the one whose last row is the latest, and of equals the first by name.
A row that is there twice (a copied folder) counts once. An acknowledgement answers the last attempt
of its transmission, and tells a round trip only if there was one: it may be meant for an earlier
copy (Karn). So `tidings learn` reads traces, too.
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
    if not files["probed"] and not files["forwarded"]:
        raise ValueError('no probes or transmissions; run it with [broker] trace = "hops"')
    return _read(stamp, str(folder), probe_timeout_s)


def _files(folder: Path) -> list[Path]:
    """Whole files; hidden ones are still being written."""
    found = sorted(folder.rglob("*.parquet"))
    return [f for f in found if not any(p[0] in "._" for p in f.relative_to(folder).parts)]


@lru_cache(maxsize=2)
def _read(stamp: tuple[tuple[str, int], ...], folder: str, probe_timeout_s: float) -> PastRows:
    tables = {table: _table(Path(folder), table) for table in READ}
    run, world = _latest(tables)
    rows = {name: _once(table.filter(pc.field("run") == run)) for name, table in tables.items()}
    instants = [table["at"].to_numpy() for table in rows.values() if table.num_rows]
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


def _table(folder: Path, table: str) -> pa.Table:
    schema = arrow_schema(TABLES[table])
    parts = []
    for file in _files(folder / table):
        with pq.ParquetFile(file) as opened:
            found = opened.read()
        version = (found.schema.metadata or {}).get(b"tidings", b"none").decode()
        if version != str(SCHEMA_VERSION):
            raise ValueError(f"{file} has rows of version {version}, read is {SCHEMA_VERSION}")
        if missing := [name for name in schema.names if name not in found.column_names]:
            raise ValueError(f"{file} has no column {missing[0]}")
        parts.append(found.select(schema.names).cast(schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _once(table: pa.Table) -> pa.Table:
    """Without what is there twice; in one thread, so that the order is always the same."""
    return table.group_by(table.column_names, use_threads=False).aggregate([])


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


def _probes(probed: pa.Table) -> pa.Table:
    """A negative round trip (a clock that was set back) tells nothing, not even of a loss."""
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
    at = table["at"].to_numpy()
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
    told = ~np.isnan(probed["round_trip_s"])
    probe_at = probed["at"] - np.where(told, probed["round_trip_s"], probe_timeout_s)
    last = sent["attempt"] == sent["attempt_max"]
    acked = last & ~np.isnan(sent["round_trip_s_min"])
    once = acked & (sent["attempt"] == 1)
    sent_at = np.concatenate((probe_at, sent["at"]))
    order = np.argsort(sent_at, kind="stable")
    return Direction(
        sent_at[order],
        np.concatenate((told, acked))[order],
        probe_at[told],
        probed["round_trip_s"][told],
        sent["at"][once],
        sent["round_trip_s_min"][once],
        changed["at"],
        changed["up"].astype(bool),
    )
