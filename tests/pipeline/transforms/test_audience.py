"""Audiences on Spark, in any number of tasks, are those that one process works out in memory."""

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.traces import tables_of, write_tables

from tidings.core.trace import Published, Row, Subscribed
from tidings.pipeline.trace_frames import read_traces
from tidings.pipeline.transforms import audience as on_spark
from tidings.traces.audience import with_audience

pytestmark = pytest.mark.xdist_group("spark")


def some_rows(seed: int) -> list[Row]:
    """Subscriptions that come, change and go, and messages in between that they are about."""
    drawn, rows = random.Random(seed), list[Row]()
    for _ in range(300):
        name, topic = (
            f"b{drawn.randrange(4)}/c{drawn.randrange(30)}",
            drawn.choice(("a/+", "a/b", "#")),
        )
        where, active = drawn.choice(("", "", f"x < {drawn.randrange(9)}")), drawn.random() < 0.8
        at = drawn.uniform(0.0, 50.0)
        rows.append(Subscribed(at, name[:2], name, topic, where, 1.0, 1.0, active))
    for message in range(2_000):
        told = drawn.choice(("", json.dumps({"x": str(drawn.randrange(9))})))
        at, topic = drawn.uniform(0.0, 60.0), drawn.choice(("a/b", "a/c", "d"))
        rows.append(Published(at, "b1", message, topic, 10, 1.0, 1.0, "d-tree", told))
    return rows


def test_the_audience_of_every_publication_is_that_of_one_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(4):  # as many files, and as many tasks
        tables = tables_of({f"run {number % 2}": some_rows(number)})
        write_tables(tmp_path, tables, f"part-{number}")
    traces = read_traces(spark, tmp_path)
    frames = traces["published"].repartition(4), traces["subscribed"]
    told = on_spark.with_audience(*frames)
    together = with_audience(*(frame.toArrow() for frame in frames))
    keys = ("run", "message", "recorded_at", "interested")
    expected = sorted(map(str, together.select(keys).to_pylist()))
    assert sorted(str(row.asDict()) for row in told.select(*keys).collect()) == expected
    sizes = {len(row.interested) for row in told.select("interested").collect()}
    assert len(sizes) > 10
