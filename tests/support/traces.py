"""Trace tables made by hand: rows in, Arrow tables out, as a run would have left them."""

import json
from collections.abc import Iterable
from math import inf
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.trace import TABLES, Carried, Delivered, Dropped, Published, Row, Subscribed
from tidings.traces.recorder import Recorder
from tidings.traces.schemas import arrow_schema

Tables = dict[str, pa.Table]


def tables_of(runs: dict[str, Iterable[Row]]) -> Tables:
    """The tables that these runs leave."""
    batches: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}
    for run, rows in runs.items():
        recorder = Recorder(run, "sim", lambda table, batch: batches[table].append(batch))
        for row in rows:
            recorder.record(row)
        recorder.flush()
    return {
        table: pa.Table.from_batches(batches[table], arrow_schema(row_type))
        for table, row_type in TABLES.items()
    }


def write_tables(folder: Path, tables: Tables, name: str = "rows") -> Path:
    """The tables as files; those without rows leave none."""
    for table, rows in tables.items():
        if rows.num_rows:
            (folder / table).mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, folder / table / f"{name}.parquet")
    return folder


def a_wish(subscription: str, deadline_s: float = inf, price: float = 1.0, at: float = 0.0) -> Row:
    broker, topic = subscription.partition("/")[0], subscription.rpartition(":")[2]
    return Subscribed(at, broker, subscription, topic, "", deadline_s, price, True)


def a_publication(
    message: int,
    at: float,
    interested: tuple[str, ...],
    deadline_s: float = inf,
    broker: str = "b1",
) -> Row:
    """A message whose audience is said instead of worked out, as rows of older versions have it."""
    told = said(*interested)
    return Published(at, broker, message, "t", 100, deadline_s, 2.0, "d-tree", told)


def said(*interested: str) -> str:
    """What stands in the place of attributes where a row names its audience."""
    return json.dumps(interested)


def a_delivery(message: int, at: float, *subscriptions: str, hops: int = 1) -> Row:
    broker = subscriptions[0].partition("/")[0]
    return Delivered(at, broker, message, 0.5, hops, subscriptions)


def a_drop(message: int, at: float, reason: str, *destinations: str) -> Row:
    return Dropped(at, "b1", message, reason, destinations)


def some_frames(kind: str, frames: int) -> Row:
    return Carried(60.0, "b1", "b2", kind, frames, 100 * frames, 32 * frames)


# A run whose every figure is computed by hand in the tests: `x` at b2, `y` and `z` at b3, and `w`
# at the publisher's own broker.
X, Y, Z, W = "b2/x:t", "b3/y:t", "b3/z:t", "b1/w:t"
BY_HAND: tuple[Row, ...] = (
    a_wish(X, 0.5, at=0.0),
    a_wish(X, 0.1, price=3.0, at=0.5),  # renewed: this holds
    a_wish(Y, 0.05),
    a_wish(Z),
    Subscribed(9.0, "b3", Z, "t", "", 0.001, 1.0, False),  # ended: changes nothing before
    # one message to all: two copies reach b2; a copy for b3 is dropped and another one arrives
    a_publication(1, 1.0, (X, Y, Z, W)),
    a_delivery(1, 1.0, W, hops=0),
    a_delivery(1, 1.03, X, hops=2),
    a_delivery(1, 1.02, X, hops=1),
    a_drop(1, 1.01, "unacknowledged", "b2", "b3"),
    a_delivery(1, 1.08, Y, Z, hops=3),
    # one that b2 never gets, for two reasons, and that is still on its way to b3
    a_publication(2, 2.0, (X, Y)),
    a_drop(2, 2.2, "expired", "b2"),
    a_drop(2, 2.1, "queue-full", "b2"),
    # one whose publisher is stricter than its subscriber
    a_publication(3, 3.0, (X,), deadline_s=0.01),
    a_delivery(3, 3.02, X),
    # one that nobody wants
    a_publication(4, 4.0, ()),
    some_frames("data", 5),
    some_frames("repeat", 1),
    some_frames("ack", 100),
)
