"""How far apart are hosts, by measurement?

A table of round-trip times has one row per measurement: columns slice (which round of measuring),
source, target and rtt_ms. A link's one-way delay is half the median round trip over the slices, the
mean of the two directions where both were measured; two hosts without a measurement have no link.
The median, because such times are heavy-tailed: in the Seattle data a link's 99th percentile is
about twenty times its median.

Or the delay follows the slices (`rtt_slices`): each lasts `slice_s`, and after the last the first
comes again, so that the mean over the slices, which the link then has as its delay, is true of the
long run. A link is there all the time, and its delay in steps.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from tidings.core.errors import ConfigError
from tidings.core.rng import Draws
from tidings.core.topology.graph import BrokerId, Topology, connect
from tidings.core.topology.rtt_slices import slice_delays_s

COLUMNS = ("slice", "source", "target", "rtt_ms")


def from_round_trips(
    measured: pa.Table,
    hosts: int,
    draws: Draws,
    slice_number: int | None = None,
    slice_s: float = 0.0,
    source: str = "round trips",
) -> Topology:
    """`hosts` of the table's hosts, drawn; the median over all slices, or the one slice named, or
    all of them one after the other, for `slice_s` each.

    A broker keeps its host's number in its name (h07), so that it can be found in the data.
    """
    if slice_s and slice_number is not None:
        raise ConfigError(source, "slice_s", slice_s, "0, because slice_number names the one slice")
    table = _rows(measured, slice_number, source)
    known = np.union1d(table["source"], table["target"]).tolist()
    if not 2 <= hosts <= len(known):
        raise ConfigError(source, "hosts", hosts, f"2 to {len(known)}, the hosts that it has")
    chosen = sorted(draws.chosen(known, hosts, "rtt-hosts"))
    width = len(str(max(known)))
    names = {host: f"h{host:0{width}}" for host in chosen}
    if slice_s:
        return _moving(names, slice_delays_s(table, chosen), slice_s, source)
    links = [
        (names[a], names[b], round_trip_ms / 2 / 1000)
        for (a, b), round_trip_ms in _round_trips_ms(table, chosen).items()
    ]
    return connect(list(names.values()), links, source)


def _moving(
    names: dict[int, BrokerId],
    delays_s: dict[tuple[int, int], list[float]],
    slice_s: float,
    source: str,
) -> Topology:
    """The overlay of these pairs, with a delay for each slice."""
    by_name = {(names[a], names[b]): in_slices for (a, b), in_slices in delays_s.items()}
    means = [(*ends, sum(in_slices) / len(in_slices)) for ends, in_slices in by_name.items()]
    overlay = connect(list(names.values()), means, source)
    links = []
    for link in overlay.links:
        in_slices = by_name[link.a, link.b]
        steps = tuple((number * slice_s, delay_s) for number, delay_s in enumerate(in_slices))
        links.append(replace(link, delay_steps=steps, repeat_s=len(in_slices) * slice_s))
    return Topology(overlay.brokers, tuple(links))


def _rows(
    measured: pa.Table, slice_number: int | None, source: str
) -> dict[str, npt.NDArray[np.float64]]:
    """The columns, without missing measurements."""
    if set(COLUMNS) - set(measured.column_names):
        raise ConfigError(source, "columns", measured.column_names, ", ".join(COLUMNS))
    table = measured.select(COLUMNS).drop_null()
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
