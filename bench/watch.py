"""How many trace rows per second does `tidings watch` keep up with?

Four brokers write a segment per table and second, as live ones do: 5,000 messages a second, each
for a subscriber at each of the three others, of which 1 % is lost, so 20,000 rows per second. The
watch works off a backlog of such segments on two cores, with its checks, join, windows, contracts
and checkpoint. The first seconds of it are a round by themselves, which loads and compiles and is
left out; the others appear after that, and its rate is counted from there to the last window. It
keeps up if that rate is above the rate at which rows are written. The figure by Spark's own clock
leaves out the check of segments, during which Spark rests.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _report import Line, line, run

from tidings.core.trace import TABLES
from tidings.pipeline.session import spark_session
from tidings.pipeline.transforms.windows import Timing, Window
from tidings.pipeline.watch.job import Watch
from tidings.traces.schemas import arrow_schema

CORES = 2
BROKERS = ("b1", "b2", "b3", "b4")
MESSAGES_PER_S, LOSS = 5_000, 0.01
SECONDS, QUICK_SECONDS = 180, 60
FIRST_SECONDS = 10
TARGET_ROWS_PER_S = 20_000.0
START_AT = 800_000_000.0  # any instant that is past
DEADLINE_S = 0.1


def measured(quick: bool) -> list[Line]:
    seconds = QUICK_SECONDS if quick else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder) / "traces"
        write_wishes(traces)
        written = sum(write_second(traces, second) for second in range(FIRST_SECONDS))
        started_at = time.perf_counter()
        spark = spark_session(f"local[{CORES}]", "bench")
        start_up_s = time.perf_counter() - started_at
        windows: list[Window] = []
        watch = Watch(spark, traces, Path(folder) / "watch", Timing(), windows.extend, print)
        first = timed_round(watch)
        written += sum(write_second(traces, second) for second in range(FIRST_SECONDS, seconds))
        rows, busy_s, began_at = watch.status.rows, watch.status.busy_s, time.perf_counter()
        while watch.step():
            pass
        watch.finish()
        took_s = time.perf_counter() - began_at
        watch.stop()
    check(windows, watch, written, seconds)
    rate = (written - rows) / took_s
    by_spark = (written - rows) / (watch.status.busy_s - busy_s)
    notes = [
        f"{written:,} rows in {watch.status.batches} batches; the first took {first:.1f} s",
        f"by Spark's own clock: {by_spark:,.0f} rows/s",
        f"Spark's start-up, left out: {start_up_s:.1f} s",
        f"load of the machine, over the last minute: {os.getloadavg()[0]:.1f}",
    ]
    name = f"watch, a backlog on {CORES} cores"
    ratio = rate / TARGET_ROWS_PER_S
    more = {"by_spark_rows_per_s": by_spark, "start_up_s": start_up_s, "notes": notes}
    return [line(name, rate, "rows/s", TARGET_ROWS_PER_S, ratio, 1.0, **more)]


def timed_round(watch: Watch) -> float:
    started_at = time.perf_counter()
    watch.step()
    return time.perf_counter() - started_at


def check(windows: list[Window], watch: Watch, written: int, seconds: int) -> None:
    """Every message is in a window, and none was late."""
    expected = sum(window.expected for window in windows)
    assert expected == seconds * MESSAGES_PER_S * (len(BROKERS) - 1), expected
    assert (watch.status.rows, watch.status.late_rows) == (written, 0), watch.status
    delivered = sum(window.delivered for window in windows)
    assert delivered == written - seconds * MESSAGES_PER_S, delivered


def write_second(traces: Path, second: int) -> int:
    """The segments of one second; how many rows they have."""
    drawn = np.random.default_rng(second)
    rows = 0
    per_broker = MESSAGES_PER_S // len(BROKERS)
    arrivals: dict[str, list[pa.Table]] = {name: [] for name in BROKERS}
    for number, name in enumerate(BROKERS):
        others = [other for other in BROKERS if other != name]
        at = START_AT + second + np.sort(drawn.random(per_broker)) * 0.9
        message = (second * len(BROKERS) + number) * per_broker + np.arange(per_broker)
        rows += write(traces, "published", name, second, published(name, at, message))
        for other in others:
            taken = drawn.random(per_broker) >= LOSS
            age_s = drawn.gamma(4.0, 0.01, per_broker)
            arrivals[other].append(
                delivered(other, name, (at + age_s)[taken], message[taken], age_s[taken])
            )
    for name, parts in arrivals.items():
        rows += write(traces, "delivered", name, second, pa.concat_tables(parts))
    return rows


def write_wishes(traces: Path) -> None:
    """Deadlines are the subscribers'; publishers state none."""
    for name in BROKERS:
        wish = {
            "broker": name,
            "predicate": "",
            "price": 1.0,
            "deadline_s": DEADLINE_S,
            "active": True,
        }
        parts = [
            table(
                "subscribed",
                {"recorded_at": np.array([START_AT - 1])},
                wish | {"subscription": subscription(name, other), "topic": topic(other)},
            )
            for other in BROKERS
            if other != name
        ]
        write(traces, "subscribed", name, 0, pa.concat_tables(parts))


def published(name: str, at: np.ndarray, message: np.ndarray) -> pa.Table:
    count = len(at)
    columns = {"recorded_at": at, "message": message, "size_bytes": np.full(count, 100)}
    columns |= {"deadline_s": np.full(count, np.inf), "price": np.ones(count)}
    texts = {"broker": name, "topic": topic(name), "strategy": "d-tree", "attributes": ""}
    return table("published", columns, texts)


def delivered(
    name: str, publisher: str, at: np.ndarray, message: np.ndarray, age_s: np.ndarray
) -> pa.Table:
    columns = {"recorded_at": at, "message": message, "age_s": age_s, "hops": np.ones(len(at), int)}
    texts = {"broker": name, "subscriptions": [subscription(name, publisher)]}
    return table("delivered", columns, texts)


def table(kind: str, columns: dict[str, np.ndarray], repeated: dict[str, object]) -> pa.Table:
    schema, count = arrow_schema(TABLES[kind]), len(columns["recorded_at"])
    repeated |= {"run": "bench", "world": "live"}
    arrays = []
    for field in schema:
        if field.name in columns:
            arrays.append(pa.array(columns[field.name], field.type))
        else:
            arrays.append(pa.array([repeated[field.name]] * count, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def write(traces: Path, kind: str, name: str, second: int, rows: pa.Table) -> int:
    (traces / kind).mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, traces / kind / f"bench-{name}-{second:06}.parquet", compression="zstd")
    return rows.num_rows


def topic(publisher: str) -> str:
    return f"bench/{publisher}"


def subscription(broker: str, publisher: str) -> str:
    return f"{broker}/client:{topic(publisher)}"


if __name__ == "__main__":
    run("watch", __doc__, measured)
