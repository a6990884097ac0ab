"""Many links are learned together: Python is not called for each of them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from support.traces import tables_of, write_tables

from tidings.core.trace import LinkChanged, Probed
from tidings.pipeline.learn.job import STEPS, _pace, learn
from tidings.pipeline.learn.measurements import checked_input
from tidings.pipeline.learn.model_rows import model_rows, with_reasons_once
from tidings.pipeline.trace_frames import read_traces
from tidings.pipeline.transforms.links.coincidence import group_numbers
from tidings.pipeline.transforms.links.delay import delays
from tidings.pipeline.transforms.links.gamma import QUANTILES, with_fits
from tidings.pipeline.transforms.links.history import (
    _of_traces,
    table_histories,
    trace_histories,
)
from tidings.pipeline.transforms.links.prediction import (
    errors,
    errors_of_links,
    persistence,
    persistence_of_links,
    slices,
)
from tidings.pipeline.transforms.links.samples import changes, table_samples, trace_samples
from tidings.pipeline.transforms.links.spells import spells

pytestmark = pytest.mark.xdist_group("spark")

SLICES = 30


def calls(work: Callable[[], object]) -> int:
    """How many functions Python calls for it, those written in C among them."""
    count = 0

    def note(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    work()  # what is done only the first time does not count
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def named(links: int, each: int) -> dict[str, Any]:
    names = np.char.add("h", np.char.zfill(np.arange(links).astype(str), 5))
    return {
        "run": ["r"] * links * each,
        "source": np.repeat(names, each),
        "target": ["z"] * links * each,
    }


def series(links: int) -> pa.Table:
    drawn = np.random.default_rng(1)
    delays_s = drawn.random(links * SLICES)
    at = np.tile(np.arange(SLICES), links)
    numbers = {"slice": at, "delay_s": delays_s, "level_s": delays_s, "held_back": at >= 24}
    return pa.table(named(links, SLICES) | numbers)


def figures(links: int) -> pa.RecordBatch:
    drawn = np.random.default_rng(2)
    quantiles_s = np.sort(0.01 + drawn.gamma(2.0, 0.01, (links, QUANTILES)), axis=1)
    lists = pa.FixedSizeListArray.from_arrays(quantiles_s.ravel(), QUANTILES)
    columns = {
        "mean_s": quantiles_s.mean(axis=1),
        "quantiles_s": lists.cast(pa.list_(pa.float64())),
    }
    return pa.RecordBatch.from_pydict(columns)


def told(links: int) -> pa.Table:
    """Questions and reports of links that fail now and then."""
    drawn = np.random.default_rng(3)
    at = np.tile(np.arange(SLICES) * 5.0, links)
    good = drawn.random(at.size) < 0.5
    good.reshape(links, SLICES)[:, 10:15] = False
    other = {"at": at, "good": good, "is_question": np.tile(np.arange(SLICES) % 7 > 0, links)}
    same = {"spell": np.zeros(at.size, int), "end_at": np.full(at.size, SLICES * 5.0)}
    return pa.table(named(links, SLICES) | other | same)


def patterns(links: int) -> pa.Table:
    """Each of its own two slices, so that nothing belongs together."""
    pieces = [
        [
            {"run": "r", "slice": s, "from_s": 60.0 * s, "to_s": 60.0 * s + 60.0}
            for s in (n, n + links)
        ]
        for n in range(links)
    ]
    names = [[f"h{n:05}\x1fz"] for n in range(links)]
    return pa.table({"pieces": pieces, "watched_s": [1e6] * links, "links": names})


ARRAYS: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "errors": (series, errors_of_links),
    "persistence": (series, persistence_of_links),
    "gamma": (figures, lambda batch: list(with_fits(iter([batch])))),
    "outages": (told, _of_traces),
    "groups": (patterns, group_numbers),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_hundred_times_the_links_take_as_many_calls(name: str) -> None:
    made, work = ARRAYS[name]
    few, many = made(20), made(2000)
    # bisections take a few steps more
    assert calls(lambda: work(many)) < 1.5 * calls(lambda: work(few)) + 50


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def grouped_in_python(*frames: DataFrame) -> list[bool]:
    return ["GroupsInPandas" in plan(frame) or "GroupsInArrow" in plan(frame) for frame in frames]


def a_table(path: Path, hosts: int, slices: int) -> Path:
    cells = [(s, a, b) for s in range(slices) for a in range(hosts) for b in range(hosts) if a != b]
    number, source, target = map(list, zip(*cells, strict=True))
    rtt_ms = np.random.default_rng(4).gamma(2.0, 10.0, len(cells))
    pq.write_table(
        pa.table({"slice": number, "source": source, "target": target, "rtt_ms": rtt_ms}), path
    )
    return path


def test_spark_calls_python_for_chunks_and_never_for_a_link(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = spark.read.parquet(str(a_table(tmp_path / "rtt.parquet", 3, 4)))
    samples = table_samples(table, 60.0)
    levels = samples.selectExpr(
        "run", "source", "target", "sent_at", "round_trip_s delay_s", "round_trip_s level_s"
    )
    series = slices(levels, 60.0, 0.2)
    rows = [Probed(1.0, "a", "b", 0.1), LinkChanged(2.0, "a", "b", False)]
    traces = read_traces(spark, write_tables(tmp_path / "traces", tables_of({"one": rows})))
    noticed = changes(traces["link_changed"])
    of_traces = trace_histories(trace_samples(traces), noticed, spells(traces))
    frames = (table_histories(samples, 60.0), errors(series), persistence(series), of_traces)
    assert grouped_in_python(*frames) == [False] * len(frames)


def test_what_goes_on_is_told_step_by_step(spark: SparkSession, tmp_path: Path) -> None:
    begun: list[tuple[str, float]] = []
    given = checked_input(a_table(tmp_path / "rtt.parquet", 3, 6), None, 0.2)
    lesson = learn(spark, given, lambda step, part: begun.append((step, part)))
    assert begun == list(STEPS.items())
    assert list(STEPS.values()) == sorted(STEPS.values())
    few = "fewer than 20 questions were asked"
    assert [(x.availability, x.availability_reason) for x in lesson.links] == [(None, few)] * 6


def test_rows_of_the_model_are_made_by_columns(spark: SparkSession, tmp_path: Path) -> None:
    given = checked_input(a_table(tmp_path / "rtt.parquet", 4, 30), None, 0.2)
    model = learn(spark, given).model
    many = pa.concat_tables([model] * 100)
    groups = pa.table({"link": pa.array(["h0\x1fh1"]), "group": pa.array([1])})
    few_calls = calls(lambda: model_rows(model, groups, 60.0))
    assert calls(lambda: model_rows(many, groups, 60.0)) < 1.5 * few_calls


def test_delays_of_a_table_are_told_without_a_row_per_link_in_every_task(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = spark.read.parquet(str(a_table(tmp_path / "rtt.parquet", 3, 4)))
    samples = table_samples(table, 60.0)
    one_way = delays(samples, _pace(samples, "table"))
    # what is broadcast is how many digits names have, and the places of slices
    joins = {frame: plan(frame).count("Join") for frame in (samples, one_way)}
    assert joins[one_way] == joins[samples]


def test_a_reason_of_many_links_is_in_memory_once_and_in_the_model_as_a_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    given = checked_input(a_table(tmp_path / "rtt.parquet", 4, 30), None, 0.2)
    model = learn(spark, given).model
    many = pa.concat_tables([model] * 100)
    short = with_reasons_once(many)
    assert short["hourly_reason"].nbytes < many["hourly_reason"].nbytes / 4
    groups = pa.table({"link": pa.array(["h0\x1fh1"]), "group": pa.array([1])})
    assert model_rows(short, groups, 60.0).equals(model_rows(many, groups, 60.0))
