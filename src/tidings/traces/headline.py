"""How did a run go? A few figures from its rows, without Spark.

`tidings simulate` and `tidings up` print them. The transforms on Spark mean exactly the same and
are tested equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.trace import TABLES
from tidings.traces.files import parquet_files, read_files, settled
from tidings.traces.fingerprints import without_repeated_rows
from tidings.traces.live_files import run_prefix
from tidings.traces.outcomes import DROPPED, IN_FLIGHT, IN_TIME, LATE, By, outcomes
from tidings.traces.schemas import arrow_schema
from tidings.traces.selection import trace_files

__all__ = [
    "DATA_KINDS",
    "HEADLINE_TABLES",
    "PERCENTILES",
    "SubscriberSummary",
    "Summary",
    "outcomes",
    "packets_per_subscriber",
    "per_subscriber",
    "read_run",
    "read_tables",
    "summarise",
    "summarise_subscribers",
    "summary",
]

# The tables that all figures here are made of.
HEADLINE_TABLES = ("subscribed", "published", "delivered", "dropped", "carried")
DATA_KINDS = ("data", "repeat")  # frames of `carried` that hold a message
PERCENTILES = {"delay_p50_s": 0.5, "delay_p95_s": 0.95, "delay_p99_s": 0.99}


class Summary(Struct, frozen=True):
    """A run in a few figures; a ratio or delay without anything to judge is NaN."""

    publications: int
    expected: int  # pairs of a publication and an interested subscription
    delivered: int
    delivery_ratio: float
    on_time_ratio: float
    packets_per_subscriber: float  # see `packets_per_subscriber`
    earnings: float  # prices of all that was in time (bounded delay, Eq. 2)
    message_number: int  # data transmissions, repeats among them
    delay_p50_s: float
    delay_p95_s: float
    delay_p99_s: float
    dropped: dict[str, int]  # by reason; `unacknowledged` is lost on a link
    in_flight: int


class SubscriberSummary(Struct, frozen=True):
    """What one subscription got."""

    run: str
    subscription: str
    broker: str
    deadline_s: float  # the tightest that held for it
    expected: int
    delivered: int
    delivery_ratio: float
    on_time_ratio: float
    earnings: float
    delay_p50_s: float
    delay_p95_s: float
    delay_p99_s: float


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """All trace tables of a folder; those that nothing was written to are empty."""
    return {
        table: read_files(files, arrow_schema(TABLES[table]))
        for table, files in trace_files(folder).items()
    }


def read_run(folder: Path, run: str) -> tuple[dict[str, pa.Table], list[str]]:
    """What the figures of one live run need, and what is wrong with files that are left out.

    Files of other runs are not looked at: there may be many, and bad ones do not concern it.
    """
    return settled(lambda: _read_run(folder, run))


def _read_run(folder: Path, run: str) -> tuple[dict[str, pa.Table], list[str]]:
    tables, problems = {}, list[str]()
    for table in HEADLINE_TABLES:
        schema, found = arrow_schema(TABLES[table]), dict[Path, pa.Table]()
        for file in _files_of(folder / table, run):
            try:
                rows = read_files([file], schema)
            except ConfigError as problem:
                file.stat()  # one that was gathered meanwhile is not bad, but no longer there
                problems.append(str(problem))
            else:
                found[file] = rows.filter(pc.equal(rows["run"], run))
        kept, left_out = without_repeated_rows(found)
        problems += [f"{each.file} {each.reason()}." for each in left_out if each.shared]
        tables[table] = pa.concat_tables([schema.empty_table(), *(found[file] for file in kept)])
    return tables, problems


def _files_of(place: Path, run: str) -> list[Path]:
    """Segments of the run, by their names, and what compaction has gathered of it."""
    segments, home = run_prefix(run), f"run={run}"
    return [
        file
        for file in parquet_files(place)
        if file.name.startswith(segments) or unquote(file.parent.name) == home
    ]


def summary(tables: Mapping[str, pa.Table], by: By = "clock") -> Summary:
    """The headline figures of the rows in these tables."""
    return summarise(outcomes(tables, by), tables)


def per_subscriber(tables: Mapping[str, pa.Table], by: By = "clock") -> list[SubscriberSummary]:
    """What each subscription got, in the order of their names."""
    return summarise_subscribers(outcomes(tables, by))


def summarise(rows: pa.Table, tables: Mapping[str, pa.Table]) -> Summary:
    """The headline figures of these outcomes and of the tables that they come from."""
    counts = _counts(rows["outcome"])
    reasons = _counts(rows.filter(pc.equal(rows["outcome"], DROPPED))["reason"])
    in_time, expected = counts.get(IN_TIME, 0), rows.num_rows
    delivered = in_time + counts.get(LATE, 0)
    return Summary(
        tables["published"].num_rows,
        expected,
        delivered,
        _ratio(delivered, expected),
        _ratio(in_time, expected),
        packets_per_subscriber(rows, tables["carried"]),
        pc.sum(_earned(rows)).as_py() or 0.0,
        message_number(tables["carried"]),
        *_percentiles(rows["delay_s"].drop_null().to_numpy()),
        dict(sorted(reasons.items())),
        counts.get(IN_FLIGHT, 0),
    )


def message_number(carried: pa.Table) -> int:
    """Data transmissions, repeats among them: what brokers receive from each other."""
    data = pc.is_in(carried["kind"], pa.array(DATA_KINDS))
    return pc.sum(carried.filter(data)["frames"]).as_py() or 0


def packets_per_subscriber(rows: pa.Table, carried: pa.Table) -> float:
    """Data transmissions, repeats among them, per publication and subscriber (DCRD, IV.C).

    A packet with several destinations counts once per link it crosses; acknowledgements are not
    counted. DCRD's subscribers are brokers, at most one per topic: so a subscriber here is a broker
    other than the publisher's with an interested subscription, however many clients it serves.
    Then R-Tree in a full mesh sends exactly one packet per subscriber, as the paper has it.
    """
    remote = rows.filter(pc.not_equal(rows["publisher_broker"], rows["subscriber_broker"]))
    keys = ["run", "message", "subscriber_broker"]
    return _ratio(message_number(carried), remote.group_by(keys).aggregate([]).num_rows)


def summarise_subscribers(rows: pa.Table) -> list[SubscriberSummary]:
    """What each subscription got, from outcomes."""
    keys = ["run", "subscription", "subscriber_broker"]
    judged = rows.append_column("in_time", pc.equal(rows["outcome"], IN_TIME))
    judged = judged.append_column("earned", _earned(rows))
    figures = [("in_time", "count"), ("in_time", "sum"), ("earned", "sum")]
    figures += [("deadline_s", "min"), ("delay_s", "list")]
    grouped = judged.group_by(keys).aggregate(figures)
    ordered = grouped.sort_by([(key, "ascending") for key in keys])
    return [_subscriber(*row.values()) for row in _scalars(ordered)]


def _scalars(table: pa.Table) -> Iterator[dict[str, pa.Scalar]]:
    """The rows of a table, without turning its lists into Python's."""
    for number in range(table.num_rows):
        yield {name: table[name][number] for name in table.column_names}


def _subscriber(*row: pa.Scalar) -> SubscriberSummary:
    run, subscription, broker, expected, in_time, earned, deadline_s = (
        value.as_py() for value in row[:7]
    )
    delays = row[7].values.drop_null().to_numpy()
    return SubscriberSummary(
        run,
        subscription,
        broker,
        deadline_s,
        expected,
        len(delays),
        _ratio(len(delays), expected),
        _ratio(in_time, expected),
        earned,
        *_percentiles(delays),
    )


def _earned(rows: pa.Table) -> pa.ChunkedArray:
    """What each outcome brings: its price, if it was in time."""
    return pc.if_else(pc.equal(rows["outcome"], IN_TIME), rows["price"], 0.0)


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()}


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else nan


def _percentiles(delays: np.ndarray) -> tuple[float, float, float]:
    """`PERCENTILES`, interpolated as Spark's `percentile` does."""
    if not len(delays):
        return nan, nan, nan
    p50, p95, p99 = np.quantile(delays, list(PERCENTILES.values()))
    return float(p50), float(p95), float(p99)
