"""How many trace rows a second become metrics, beside DuckDB on the same Parquet?

The rows are generated: runs as a sweep leaves them, one file per run and table, in which every
message is wanted by three subscriptions, nineteen in twenty copies arrive, some of them late, one
in forty is dropped and the rest is under way. From them both compute, per run and strategy, what
`tidings analyse` does: outcomes, ratios, earnings, exact percentiles of delays, and traffic; and
the same per subscriber. They must agree. Spark has 2 GB for driver and executor together, as both
are one process in local mode, and spills. DuckDB has six times that, since within 2 GB it wrote
more than 30 GB to the disk and gave up; where it still gives up there is nothing to compare with.
Spark's start-up is left out, reading the files is not. The growth is the time of the larger trace
over that of the smaller one, which has a tenth of its rows: 10 is linear. Last, the larger trace is
analysed whole, within the same memory: every table that `tidings analyse` makes, windows, topics,
reliability and distributions among them; beside it stands the rate of the two tables alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from math import nan
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from _report import Line, line, run
from pyspark.sql import SparkSession

from tidings.core.trace import TABLES
from tidings.pipeline.analyse.job import analyse, persisted
from tidings.pipeline.analyse.spark_settings import settings_for_size
from tidings.pipeline.session import spark_session
from tidings.pipeline.trace_frames import read_intake
from tidings.pipeline.transforms import metrics, served
from tidings.pipeline.transforms.outcomes import examined
from tidings.traces.intake import take_in
from tidings.traces.schemas import arrow_schema

ROWS, QUICK_ROWS = (5_000_000, 50_000_000), (500_000, 5_000_000)
MEMORY, DUCKDB_MEMORY = "2g", "12GB"
CORES = 2
RUNS = 10
WANTED = 3  # subscriptions of a message
TOPICS = np.array([f"topic/{n}" for n in range(40)], object)
PLACES = np.arange(len(TOPICS) * WANTED)  # of subscriptions: those of a topic stand together
SUBSCRIPTIONS = np.array(
    [f"b{n % 20:02}/client{n:03}:{TOPICS[n // WANTED]}" for n in PLACES], object
)
DEADLINE_S = 0.3
BATCH = 500_000  # messages that are generated at once
# per message: itself, and of three copies 19 in 20 delivered, and 1 in 40 dropped
ROWS_PER_MESSAGE = 1 + WANTED * (0.95 + 0.025)
SERVED = [
    "expected",
    "delivered",
    "dropped",
    "delivery_ratio",
    "on_time_ratio",
    "earnings",
    *metrics.DELAYS,
]
FIGURES = {"strategies": [*SERVED, *metrics.TRAFFIC], "subscribers": SERVED}

OUTCOMES = """
create temp table outcomes as
with pairs as (
    select run, message, strategy, broker as publisher_broker, recorded_at as published_at,
           deadline_s, price, subscription
    from read_parquet('{folder}/published/*.parquet')
    join (select run, topic, subscription from read_parquet('{folder}/subscribed/*.parquet'))
    using (run, topic)
), contracts as (
    select run, subscription,
           max({{'recorded_at': recorded_at, 'deadline_s': deadline_s, 'price': price}}) as latest
    from read_parquet('{folder}/subscribed/*.parquet') where active group by all
), arrivals as (
    select run, message, subscription,
           min({{'recorded_at': recorded_at, 'age_s': age_s, 'hops': hops}}) as earliest
    from (select run, message, recorded_at, age_s, hops, unnest(subscriptions) as subscription
          from read_parquet('{folder}/delivered/*.parquet')) group by all
), drops as (
    select run, message, broker, min({{'recorded_at': recorded_at, 'reason': reason}}) as earliest
    from (select run, message, recorded_at, reason, unnest(destinations) as broker
          from read_parquet('{folder}/dropped/*.parquet')) group by all
), joined as (
    select pairs.run, pairs.message, strategy, subscription, publisher_broker,
           split_part(subscription, '/', 1) as subscriber_broker, d.earliest.reason as reason,
           least(pairs.deadline_s, c.latest.deadline_s) as deadline_s,
           pairs.price * coalesce(c.latest.price, 1.0) as price,
           a.earliest.recorded_at - published_at as exact_s
    from pairs
    left join contracts c using (run, subscription)
    left join arrivals a using (run, message, subscription)
    left join drops d on d.run = pairs.run and d.message = pairs.message
                     and d.broker = split_part(subscription, '/', 1)
)
select run, message, strategy, subscription, publisher_broker, subscriber_broker,
       price, round(exact_s * 1e6) / 1e6 as delay_s,
       coalesce(exact_s <= deadline_s + 1e-6, false) as in_time,
       exact_s is null and reason is not null as dropped
from joined
"""
FIGURES_SQL = """
select {keys}, count(*) as expected, count(delay_s) as delivered, count_if(dropped) as dropped,
       count(delay_s) / count(*) as delivery_ratio, count_if(in_time) / count(*) as on_time_ratio,
       coalesce(sum(price) filter (in_time), 0) as earnings,
       quantile_cont(delay_s, 0.5) as delay_p50_s, quantile_cont(delay_s, 0.95) as delay_p95_s,
       quantile_cont(delay_s, 0.99) as delay_p99_s
from outcomes group by {keys} order by {keys}
"""
# Links do not tell strategies apart; here each run has one.
TRAFFIC_SQL = """
with traffic as (
    select run, sum(frames) as message_number
    from read_parquet('{folder}/carried/*.parquet')
    where kind in ('data', 'repeat') group by run
), subscribers as (
    select run, count(*) as subscribers
    from (select distinct run, message, subscriber_broker from outcomes
          where publisher_broker <> subscriber_broker) group by run
)
select run, message_number, message_number / subscribers as packets_per_subscriber
from traffic join subscribers using (run)
"""
Answers = dict[str, pd.DataFrame]
T = TypeVar("T")


def measured(quick: bool) -> list[Line]:
    spark = spark_session(
        f"local[{CORES}]",
        "bench",
        {"spark.driver.memory": MEMORY, "spark.executor.memory": MEMORY},
    )
    spark.range(1000).groupBy("id").count().collect()  # the first job loads classes
    lines, seconds, sizes = [], [], QUICK_ROWS if quick else ROWS
    for rows in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            written = generate(folder, rows)
            ours, found = timed(lambda folder=folder: on_spark(spark, folder))
            print(f"{written:,} rows: Spark {ours:.1f} s", file=sys.stderr)  # the rest takes long
            notes = []
            try:
                theirs, expected = timed(lambda folder=folder: on_duckdb(folder))
                compare(found, expected)
            except duckdb.Error as error:  # within this memory it may need more disk than there is
                theirs = nan
                notes.append(f"not compared, as DuckDB gave up: {str(error).partition(chr(10))[0]}")
            if rows == sizes[-1]:
                whole, analysis = timed(lambda folder=folder: analyse(spark, folder))
                compare({name: getattr(analysis, name) for name in FIGURES}, found)
        seconds.append((ours, theirs))
        load = os.getloadavg()[0]
        notes.insert(
            0, f"Spark {ours:.1f} s, DuckDB {theirs:.1f} s; load of the machine {load:.1f}"
        )
        label = f"metrics of {written / 1e6:.1f} million rows"
        rate, baseline = written / ours, written / theirs
        lines.append(line(label, rate, "rows/s", baseline, rate / baseline, notes=notes))
    (small, small_there), (large, large_there) = seconds
    growth, there = large / small, large_there / small_there
    lines.append(line("time for ten times the rows", growth, "times", there, growth / there))
    tables, rate = len(analysis.tables()), written / whole
    name = f"all {tables} tables of {written / 1e6:.1f} million rows"
    notes = [f"{whole:.1f} s; load of the machine {os.getloadavg()[0]:.1f}"]
    return [*lines, line(name, rate, "rows/s", written / large, large / whole, notes=notes)]


def generate(folder: Path, rows: int) -> int:
    """Trace files of about so many rows; how many it became."""
    chance = np.random.default_rng(1)
    messages, written = int(rows / ROWS_PER_MESSAGE / RUNS), 0
    for number in range(RUNS):
        written += wishes(folder, f"run{number:02}")
        writers = {
            table: writer(folder, f"run{number:02}", table)
            for table in ("published", "delivered", "dropped", "carried")
        }
        for first in range(0, messages, BATCH):
            count = min(BATCH, messages - first)
            for table, columns in story(chance, f"run{number:02}", number, first, count).items():
                batch = table_of(table, columns)
                writers[table].write_table(batch)
                written += batch.num_rows
        for one in writers.values():
            one.close()
    return written


def writer(folder: Path, name: str, table: str) -> pq.ParquetWriter:
    (folder / table).mkdir(exist_ok=True)
    schema = arrow_schema(TABLES[table])
    return pq.ParquetWriter(folder / table / f"{name}.parquet", schema, compression="zstd")


def wishes(folder: Path, name: str) -> int:
    count = len(SUBSCRIPTIONS)
    columns = {
        "run": np.repeat(name, count),
        "recorded_at": np.zeros(count),
        "broker": homes(np.arange(count)),
        "subscription": SUBSCRIPTIONS,
        "topic": TOPICS[PLACES // WANTED],
        "predicate": np.repeat("", count),
        "deadline_s": np.repeat(DEADLINE_S, count),
        "price": np.arange(count) % 3 + 1.0,
        "active": np.ones(count, bool),
    }
    with writer(folder, name, "subscribed") as file:
        file.write_table(table_of("subscribed", columns))
    return count


def story(
    chance: np.random.Generator, name: str, number: int, first: int, count: int
) -> dict[str, dict[str, Any]]:
    """The columns of each table, for messages from `first` on, by NumPy."""
    message = np.arange(first, first + count)
    published_at = message / 100
    topic = message * 7 % len(TOPICS)
    wanted = topic[:, None] * WANTED + np.arange(WANTED)
    copies, owners = wanted.ravel(), np.repeat(message, WANTED)
    fate = chance.random(copies.size)
    arrived, dropped = fate < 0.95, (fate >= 0.95) & (fate < 0.975)
    delay_s = chance.gamma(3.0, 0.05, copies.size)
    sent_at = np.repeat(published_at, WANTED)
    minutes = np.arange(first // 6000, (first + count) // 6000 + 1)
    strategy = ("d-tree", "r-tree")[number % 2]
    return {
        "published": {
            "run": np.repeat(name, count),
            "recorded_at": published_at,
            "broker": np.repeat("b00", count),
            "message": message,
            "topic": TOPICS[topic],
            "size_bytes": np.repeat(200, count),
            "deadline_s": np.repeat(np.inf, count),
            "price": np.ones(count),
            "strategy": np.repeat(strategy, count),
            "attributes": np.repeat("", count),
        },
        "delivered": {
            "run": np.repeat(name, arrived.sum()),
            "recorded_at": (sent_at + delay_s)[arrived],
            "broker": homes(copies[arrived]),
            "message": owners[arrived],
            "age_s": delay_s[arrived],
            "hops": np.repeat(2, arrived.sum()),
            "subscriptions": lists(SUBSCRIPTIONS, copies[arrived], 1),
        },
        "dropped": {
            "run": np.repeat(name, dropped.sum()),
            "recorded_at": sent_at[dropped] + 1.0,
            "broker": np.repeat("b00", dropped.sum()),
            "message": owners[dropped],
            "reason": np.repeat("expired", dropped.sum()),
            "destinations": lists(BROKERS, copies[dropped] % 20, 1),
        },
        "carried": {
            "run": np.repeat(name, minutes.size),
            "recorded_at": minutes * 60.0,
            "broker": np.repeat("b00", minutes.size),
            "neighbour": np.repeat("b01", minutes.size),
            "kind": np.repeat("data", minutes.size),
            "frames": np.repeat(6000, minutes.size),
            "size_bytes": np.repeat(1_500_000, minutes.size),
            "header_bytes": np.repeat(300_000, minutes.size),
        },
    }


BROKERS = np.array([f"b{n:02}" for n in range(20)], object)


def homes(subscription: np.ndarray) -> np.ndarray:
    return BROKERS[subscription % 20]


def lists(names: np.ndarray, codes: np.ndarray, length: int) -> pa.Array:
    """Lists of so many names each; made of codes, as texts would take minutes."""
    texts = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names))
    offsets = pa.array(np.arange(0, codes.size + 1, length), pa.int32())
    return pa.ListArray.from_arrays(offsets, texts.cast(pa.string()))


def table_of(table: str, columns: dict[str, Any]) -> pa.Table:
    schema = arrow_schema(TABLES[table])
    size = len(columns["recorded_at"])
    whole = columns | {"world": pa.repeat(pa.scalar("sim"), size)}
    arrays = []
    for field in schema:
        values = whole[field.name]
        array = values if isinstance(values, pa.Array) else pa.array(values)
        arrays.append(array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def on_spark(spark: SparkSession, folder: Path) -> Answers:
    intake = take_in(folder)
    traces = read_intake(spark, folder, intake)
    columns = (*metrics.NEEDED, "copies", "clock_back")
    with (
        settings_for_size(spark, intake.size_bytes()),
        persisted(examined(traces).select(*columns)) as rows,
    ):
        strategies = metrics.per_strategy(rows, traces["published"], traces["carried"]).toPandas()
        subscribers = served.per_subscriber(rows).toPandas()
    return {
        "strategies": strategies.sort_values(["run", "strategy"], ignore_index=True),
        "subscribers": subscribers.sort_values(["run", "subscription"], ignore_index=True),
    }


def on_duckdb(folder: Path) -> Answers:
    with tempfile.TemporaryDirectory() as spill, duckdb.connect() as there:
        there.execute(f"set memory_limit='{DUCKDB_MEMORY}'; set threads={CORES}")
        there.execute(f"set temp_directory='{spill}'; set preserve_insertion_order=false")
        there.execute(OUTCOMES.format(folder=folder))
        keys = {"strategies": "run, strategy", "subscribers": "run, subscription"}
        answers = {
            name: there.execute(FIGURES_SQL.format(keys=key)).df() for name, key in keys.items()
        }
        traffic = there.execute(TRAFFIC_SQL.format(folder=folder)).df()
    return answers | {"strategies": answers["strategies"].merge(traffic, "left", "run")}


def compare(found: Answers, expected: Answers) -> None:
    for name, table in expected.items():
        columns = FIGURES[name]
        pd.testing.assert_frame_equal(found[name][columns], table[columns], check_dtype=False)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    started_at = time.perf_counter()
    answers = work()
    return time.perf_counter() - started_at, answers


if __name__ == "__main__":
    run("analyse", __doc__, measured)
