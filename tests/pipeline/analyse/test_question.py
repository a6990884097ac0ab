"""Delays, losses and bytes of simulated runs, against the same computed in plain Python."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from support.scenarios import audiences
from support.sweeps import a_spec

from tidings.pipeline.analyse.question import MEASURES, Question
from tidings.pipeline.sweep.grid import Point, points_of, read_spec
from tidings.pipeline.sweep.job import sweep
from tidings.pipeline.sweep.measure import measure
from tidings.traces import headline

pytestmark = pytest.mark.xdist_group("spark")

# Links that lose frames and fail, so that there are repeats, losses and two kinds of delay.
SCENARIO = """
[run]
seconds = 6
start_s = 1.5
drain_s = 1

[topology]
kind = "harmony"

[links]
loss_ratio = 0.2
failure_probability = 0.3
failure_epoch_s = 2

[broker]
estimates = "measured"
probe_every_s = 0.5
probe_timeout_s = 0.3
transmissions = 2
exhausted = "drop"

[[workload.publisher]]
broker = "n2"
topic = "harmony/t1"
rate_per_s = 20
payload_bytes = 150

[[workload.publisher]]
broker = "n3"
topic = "harmony/t2"
rate_per_s = 10
payload_bytes = 40

[[workload.subscriber]]
name = "s1"
broker = "n1"
topic = "harmony/#"
deadline_ms = 18

[[workload.subscriber]]
name = "s5"
broker = "n5"
topic = "harmony/t1"
deadline_ms = 50

[[workload.subscriber]]
name = "s4"
broker = "n4"
topic = "harmony/t2"
"""
GRID = '"broker.strategy" = ["direct", "d-tree"]\n"run.seed" = [1]\n'
S5 = "n5/s5:harmony/t1"


class Owed(NamedTuple):
    """One message for one subscription, as plain Python finds it in the rows."""

    run: str
    subscription: str
    published_at: float
    deadline_s: float
    delay_s: float | None


def silent(done: int, points: int) -> None:
    pass


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    return points_of(read_spec(a_spec(tmp_path_factory.mktemp("spec"), GRID, SCENARIO)))


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")
    report = sweep(read_spec(a_spec(folder, GRID, SCENARIO)), folder / "out", lambda: spark, silent)
    assert not report.failures
    return folder / "out"


@pytest.fixture(scope="module")
def rows(out: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: table.to_pylist() for name, table in headline.read_tables(out).items()}


@pytest.fixture(scope="module")
def owed(rows: dict[str, list[dict[str, Any]]]) -> list[Owed]:
    return list(_owed(rows))


def _owed(rows: dict[str, list[dict[str, Any]]]) -> Iterator[Owed]:
    deadlines = {(row["run"], row["subscription"]): row["deadline_s"] for row in rows["subscribed"]}
    arrivals: dict[tuple[str, int, str], float] = {}
    for row in rows["delivered"]:
        for taker in row["subscriptions"]:
            key = row["run"], row["message"], taker
            arrivals[key] = min(row["recorded_at"], arrivals.get(key, row["recorded_at"]))
    for row in audiences(rows):
        for wish in row["interested"]:
            at = arrivals.get((row["run"], row["message"], wish))
            delay_s = None if at is None else at - row["recorded_at"]
            yield Owed(row["run"], wish, row["recorded_at"], deadlines[row["run"], wish], delay_s)


def served(some: Iterable[Owed]) -> dict[str, float]:
    each = list(some)
    delays = [one.delay_s for one in each if one.delay_s is not None]
    in_time = [one for one in each if one.delay_s is not None and one.delay_s <= one.deadline_s]
    found = {
        "loss_ratio": 1 - len(delays) / len(each),
        "delivery_ratio": len(delays) / len(each),
        "on_time_ratio": len(in_time) / len(each),
    }
    if not delays:
        return found
    percentiles = pd.Series(delays).quantile([0.5, 0.95, 0.99])
    named = zip(("delay_p50_s", "delay_p95_s", "delay_p99_s"), percentiles, strict=True)
    return found | {"delay_mean_s": fmean(delays)} | dict(named)


def values(found: pd.DataFrame, *keys: str) -> dict[Any, float]:
    known = found.dropna(subset="value")
    return dict(zip(known[[*keys]].itertuples(index=False, name=None), known["value"], strict=True))


def test_each_subscriber_has_its_delays_and_losses_and_all_have_a_mean(
    out: Path, points: list[Point], owed: list[Owed], spark: SparkSession
) -> None:
    question = Question(MEASURES["subscriber"], "subscriber")
    found = values(
        measure(lambda: spark, out, "tiny", points, question, silent).fillna({"subscription": ""}),
        *("run", "subscription", "metric"),
    )
    expected: dict[tuple[str, str, str], float] = {}
    for point in points:
        by_metric = defaultdict(list)
        for wish in {one.subscription for one in owed}:
            mine = served(o for o in owed if (o.run, o.subscription) == (point.name, wish))
            for metric, value in mine.items():
                expected[point.name, wish, metric] = value
                by_metric[metric].append(value)
        for metric, each in by_metric.items():
            expected[point.name, "", metric] = fmean(each)
    assert found == pytest.approx(expected)
    assert len({v for (_, _, metric), v in found.items() if metric == "loss_ratio"}) > 3


@pytest.mark.parametrize("subscription", [None, S5])
def test_the_distribution_of_delays_is_that_of_what_was_delivered(
    subscription: str | None,
    out: Path,
    points: list[Point],
    owed: list[Owed],
    spark: SparkSession,
) -> None:
    places = (0.011, 0.012, 0.013, 0.02, 0.5)  # n2 and n5 are 12 ms apart
    question = Question(("delay_cdf",), "delay", places, subscription=subscription)
    found = values(measure(lambda: spark, out, "tiny", points, question, silent), "run", "at")
    expected = {}
    for point in points:
        delays = [
            one.delay_s for one in owed if one.run == point.name and one.delay_s is not None
            and subscription in (None, one.subscription)
        ]  # fmt: skip
        for place in places:
            at_most = sum(delay <= place + 1e-6 for delay in delays)
            expected[point.name, place] = at_most / len(delays)
    assert found == pytest.approx(expected)
    assert {share for (_, at), share in found.items() if at == 0.5} == {1.0}
    assert any(0 < share < 1 for share in found.values())


@pytest.mark.parametrize(("subscription", "bin_s"), [(None, 1.0), (S5, 0.5)])
def test_over_time_each_message_counts_when_it_was_published(
    subscription: str | None,
    bin_s: float,
    out: Path,
    points: list[Point],
    owed: list[Owed],
    spark: SparkSession,
) -> None:
    question = Question(MEASURES["time"], "time", bin_s=bin_s, subscription=subscription)
    found = values(
        measure(lambda: spark, out, "tiny", points, question, silent), "run", "at", "metric"
    )
    stretches = defaultdict(list)
    for one in owed:
        if subscription in (None, one.subscription):
            stretches[one.run, one.published_at // bin_s * bin_s].append(one)
    expected = {
        (*key, metric): value
        for key, some in stretches.items()
        for metric, value in served(some).items()
        if metric in MEASURES["time"]
    }
    assert found == pytest.approx(expected)
    assert min(at for _, at, _ in found) == (1.0 if bin_s == 1.0 else 1.5)
    assert max(at for _, at, _ in found) == 7.0


def test_whole_runs_have_delays_losses_and_bytes_by_kind(
    out: Path,
    points: list[Point],
    owed: list[Owed],
    rows: dict[str, list[dict[str, Any]]],
    spark: SparkSession,
) -> None:
    rates = {"control_bytes_per_s": 0.0, "header_bytes_per_s": 0.0, "payload_bytes_per_s": 0.0}
    question = Question(("delay_mean_s", "loss_ratio", *rates))
    found = values(measure(lambda: spark, out, "tiny", points, question, silent), "run", "metric")
    expected = {}
    for point in points:
        mine, totals = served(one for one in owed if one.run == point.name), dict(rates)
        for row in rows["carried"]:
            if row["run"] != point.name:
                continue
            if row["kind"] in ("ack", "probe", "control", "gossip"):
                totals["control_bytes_per_s"] += row["size_bytes"]
            elif row["kind"] in ("data", "repeat"):
                totals["header_bytes_per_s"] += row["header_bytes"]
                totals["payload_bytes_per_s"] += row["size_bytes"] - row["header_bytes"]
        for metric, total in totals.items():
            expected[point.name, metric] = total / 6
        for metric in ("delay_mean_s", "loss_ratio"):
            expected[point.name, metric] = mine[metric]
        frames = sum(row["frames"] for row in rows["carried"]
                     if row["run"] == point.name and row["kind"] in ("data", "repeat"))  # fmt: skip
        assert 40 * frames < totals["payload_bytes_per_s"] < 150 * frames  # as publishers said
    assert found == pytest.approx(expected)
    assert all(value > 0 for value in found.values())
