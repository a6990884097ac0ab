"""How far apart are hosts, by measurement?

A file of round-trip times has one row per measurement: columns slice (which round of measuring),
source, target and rtt_ms. A link's one-way delay is half the median round trip over the slices, the
mean of the two directions where both were measured; two hosts without a measurement have no link.
The median, because such times are heavy-tailed: in the Seattle data a link's 99th percentile is
about twenty times its median.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.errors import ConfigError
from tidings.core.rng import Draws
from tidings.core.topology.graph import Topology, connect

COLUMNS = ("slice", "source", "target", "rtt_ms")


def from_rtt_matrix(
    path: Path,
    hosts: int,
    draws: Draws,
    slice_number: int | None = None,
    source: str = "",
) -> Topology:
    """`hosts` of the file's hosts, drawn; the median over all slices, or the one slice named.

    A broker keeps its host's number in its name (h07), so that it can be found in the data.
    """
    source = source or str(path)
    table = _rows(path, slice_number, source)
    known = np.union1d(table["source"], table["target"]).tolist()
    if not 2 <= hosts <= len(known):
        raise ConfigError(source, "hosts", hosts, f"2 to {len(known)}, the hosts of {path}")
    chosen = sorted(draws.chosen(known, hosts, "rtt-hosts"))
    width = len(str(max(known)))
    names = {host: f"h{host:0{width}}" for host in chosen}
    links = [
        (names[a], names[b], round_trip_ms / 2 / 1000)
        for (a, b), round_trip_ms in _round_trips_ms(table, chosen).items()
    ]
    return connect(list(names.values()), links, source)


def _rows(path: Path, slice_number: int | None, source: str) -> dict[str, npt.NDArray[np.float64]]:
    """The columns of the file, without missing measurements."""
    try:
        file = pq.ParquetFile(path)
        missing = set(COLUMNS) - set(file.schema_arrow.names)
        if missing:
            raise ConfigError(source, "columns", file.schema_arrow.names, ", ".join(COLUMNS))
        table = file.read(columns=list(COLUMNS)).drop_null()
    except (OSError, pa.ArrowException) as error:
        accepted = f"a readable Parquet file ({error})"
        raise ConfigError(source, "path", str(path), accepted) from None
    rows = {name: table[name].to_numpy() for name in COLUMNS}
    wanted = np.isfinite(rows["rtt_ms"])
    if slice_number is not None:
        wanted &= rows["slice"] == slice_number
    if not wanted.any():
        raise ConfigError(source, "slice_number", slice_number, _slices(rows["slice"]))
    return {name: column[wanted] for name, column in rows.items()}


def _slices(slices: npt.NDArray[np.float64]) -> str:
    if not slices.size:
        return "a file with measurements"
    return f"a slice of the file, which has {slices.min()} to {slices.max()}"


def _round_trips_ms(
    table: dict[str, npt.NDArray[np.float64]], chosen: list[int]
) -> dict[tuple[int, int], float]:
    """The round trip of each measured pair of the chosen hosts."""
    source, target = table["source"].astype(np.int64), table["target"].astype(np.int64)
    among = np.isin(source, chosen) & np.isin(target, chosen) & (source != target)
    base = max(chosen) + 1
    directions = source[among] * base + target[among]
    order = np.argsort(directions, kind="stable")
    numbers, starts = np.unique(directions[order], return_index=True)
    per_direction = np.split(table["rtt_ms"][among][order].astype(np.float64), starts[1:])
    medians_ms: dict[tuple[int, int], list[float]] = defaultdict(list)
    # Without any measurement `split` still gives one (empty) piece, which has no number.
    for number, rtts_ms in zip(numbers.tolist(), per_direction, strict=False):
        a, b = sorted(divmod(number, base))
        medians_ms[a, b].append(float(np.median(rtts_ms)))
    return {pair: sum(both) / len(both) for pair, both in sorted(medians_ms.items())}
