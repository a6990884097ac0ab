"""Spark's metrics equal the headline figures on the same rows."""

from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy import stats
from support.traces import (
    BY_HAND,
    Tables,
    W,
    X,
    Y,
    Z,
    a_delivery,
    a_drop,
    a_publication,
    a_wish,
    said,
    some_frames,
    tables_of,
    write_tables,
)

from tidings.core.errors import ConfigError
from tidings.core.trace import TABLES, Published, Row, Subscribed
from tidings.pipeline.analyse.intervals import with_paired_intervals
from tidings.pipeline.analyse.job import SHORTEST_S, cdf_places
from tidings.pipeline.schemas import TRACE_TYPES
from tidings.pipeline.trace_frames import Traces, read_traces
from tidings.pipeline.transforms import metrics, served
from tidings.pipeline.transforms.lateness import lateness_cdf
from tidings.pipeline.transforms.outcomes import examined, outcomes
from tidings.pipeline.transforms.traffic import messages_received
from tidings.traces import headline
from tidings.traces.outcomes import OUTCOME_COLUMNS

pytestmark = pytest.mark.xdist_group("spark")

SUBSCRIPTIONS = tuple(f"b{number % 7}/s{number}:t" for number in range(20))
ORDER = ["run", "published_at", "message", "subscription"]


def random_rows(seed: int, publications: int = 400) -> list[Row]:
    """Rows of every kind with few distinct instants, so that copies and ties are common."""
    chance = np.random.default_rng(seed)
    rows: list[Row] = [
        a_wish(wish, float(chance.choice([0.2, 0.5, inf])), at=float(chance.integers(100)))
        for wish in SUBSCRIPTIONS * 3
    ]
    for message in range(publications):
        at = float(chance.integers(100))
        wanted = chance.choice(SUBSCRIPTIONS, chance.integers(0, 8), replace=False)
        rows.append(a_publication(message, at, tuple(map(str, wanted)), broker="b1"))
        for wish in map(str, wanted):
            for _ in range(chance.integers(0, 3)):
                after_s = float(chance.choice([0.1, 0.3, 0.7]))
                rows.append(a_delivery(message, at + after_s, wish, hops=int(chance.integers(4))))
            if chance.random() < 0.5:
                reason = str(chance.choice(["expired", "no-route"]))
                rows.append(a_drop(message, at + 0.2, reason, wish.partition("/")[0]))
    return [*rows, some_frames("data", 900), some_frames("repeat", 5), some_frames("ack", 7)]


@pytest.fixture(scope="module")
def tables() -> Tables:
    return tables_of({"by hand": BY_HAND, "one": random_rows(1), "two": random_rows(2)})


@pytest.fixture(scope="module")
def traces(spark: SparkSession, tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> Traces:
    return read_traces(spark, write_tables(tmp_path_factory.mktemp("traces"), tables))


@pytest.fixture(scope="module")
def rows(traces: Traces) -> DataFrame:
    """The outcomes, kept: most metrics are made of them."""
    return outcomes(traces).persist()


def one_run(tables: Tables, run: str) -> Tables:
    return {
        name: rows.filter(np.array(rows["run"].to_pylist()) == run) if rows.num_rows else rows
        for name, rows in tables.items()
    }


@pytest.mark.parametrize("by", ["clock", "age"])
def test_outcomes_equal_those_without_spark(traces: Traces, tables: Tables, by: str) -> None:
    found = outcomes(traces, by).toPandas().sort_values(ORDER, ignore_index=True)
    expected = headline.outcomes(tables, by).to_pandas()
    assert list(found.columns) == list(OUTCOME_COLUMNS)
    assert set(expected["outcome"]) == {"in-time", "late", "dropped", "in-flight"}
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_a_renewed_contract_holds_from_then_on(spark: SparkSession, tmp_path: Path) -> None:
    rows = [a_wish(X, 1.0, price=5.0, at=2.0), a_wish(X, 0.1, price=7.0, at=17.0)]
    rows += [a_publication(m, at, (X,)) for m, at in enumerate([1.0, 2.0, 16.9, 17.0, 30.0])]
    rows += [a_delivery(m, at + 0.5, X) for m, at in enumerate([1.0, 2.0, 16.9, 17.0, 30.0])]
    tables = tables_of({"day": rows})
    judged = {0: "in-time", 1: "in-time", 2: "in-time", 3: "late", 4: "late"}
    asked = {0: (1.0, 10.0), 1: (1.0, 10.0), 2: (1.0, 10.0), 3: (0.1, 14.0), 4: (0.1, 14.0)}
    frame = outcomes(read_traces(spark, write_tables(tmp_path, tables)))
    for found in (frame.toPandas(), headline.outcomes(tables).to_pandas()):
        each = found.set_index("message")
        assert each["outcome"].to_dict() == judged
        pairs = each[["deadline_s", "price"]].itertuples(index=False, name=None)
        assert dict(zip(each.index, pairs, strict=True)) == asked


def test_logs_are_subscribers_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    topics = {"shop/$log-orders": "orders/#", "shop/$log-invoices": "invoices/2026/#"}
    topics |= {"shop/a:b:orders/#": "orders/#"}
    rows = [Subscribed(0.0, "shop", name, t, "", inf, 1.0, True) for name, t in topics.items()]
    rows += [a_publication(1, 1.0, (*topics, "shop/unknown:x"))]
    traces = read_traces(spark, write_tables(tmp_path, tables_of({"run": rows})))
    found = {row.subscription: row.subscriber for row in examined(traces).collect()}
    assert found == {
        "shop/$log-orders": "shop/$log-orders",
        "shop/$log-invoices": "shop/$log-invoices",
        "shop/a:b:orders/#": "shop/a:b",
        "shop/unknown:x": "shop/unknown",
    }


def test_figures_per_strategy_equal_the_summary_of_each_run(
    rows: DataFrame, traces: Traces, tables: Tables
) -> None:
    found = metrics.per_strategy(rows, traces["published"], traces["carried"]).toPandas()
    assert set(found["run"]) == {"by hand", "one", "two"}
    for row in found.to_dict("records"):
        expected = headline.summary(one_run(tables, row["run"]))
        assert row["dropped"] == sum(expected.dropped.values())
        for name in ("publications", "expected", "delivered", "in_flight"):
            assert row[name] == getattr(expected, name)
        for name in metrics.FIGURES:
            assert row[name] == pytest.approx(getattr(expected, name), nan_ok=True)


def test_figures_by_hand(rows: DataFrame, traces: Traces) -> None:
    by_hand = metrics.per_strategy(rows, traces["published"], traces["carried"]).where(
        "run = 'by hand'"
    )
    (row,) = by_hand.collect()
    assert (row.publications, row.expected, row.delivered, row.dropped) == (4, 7, 5, 1)
    assert (row.delivery_ratio, row.on_time_ratio) == (5 / 7, 3 / 7)
    assert row.packets_per_subscriber == 6 / 5
    assert (row.earnings, row.message_number) == (10.0, 6)
    assert row.delay_p50_s == pytest.approx(0.02)
    assert row.delay_p99_s == pytest.approx(0.08)


def test_brokers_receive_from_each_other_and_from_publishers_that_have_no_link(
    spark: SparkSession, traces: Traces
) -> None:
    def received(*apart: str) -> int:
        runs = spark.createDataFrame([(run,) for run in apart], "run string")
        found = messages_received(traces["carried"], traces["published"], runs)
        (row,) = found.where("run = 'by hand'").collect()
        return int(row.messages_received)

    assert received() == received("one") == 6 + 4, "data frames, and publications"
    assert received("by hand") == 6, "a publication crosses the link of its publisher"


def test_figures_per_subscriber_equal_those_without_spark(traces: Traces, tables: Tables) -> None:
    found = served.per_subscriber(examined(traces)).toPandas().set_index(["run", "subscription"])
    assert {name for run, name in found.index if run == "by hand"} == {W, X, Y, Z}
    each = headline.per_subscriber(tables)
    assert len(each) == len(found)
    for expected in each:
        row = found.loc[expected.run, expected.subscription]
        assert row["subscriber_broker"] == expected.broker
        for name in ("deadline_s", "expected", "delivered", "on_time_ratio", "delay_p95_s"):
            assert row[name] == pytest.approx(getattr(expected, name), nan_ok=True)
        assert row["earnings"] == pytest.approx(expected.earnings)


def test_drop_reasons_equal_those_without_spark(rows: DataFrame, tables: Tables) -> None:
    found = metrics.drop_reasons(rows).toPandas()
    for run, reasons in found.groupby("run"):
        expected = headline.summary(one_run(tables, str(run))).dropped
        assert dict(zip(reasons["reason"], reasons["count"], strict=True)) == expected
    assert set(found["run"]) == {"by hand", "one", "two"}


def test_lateness_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    late = {1: 0.125, 2: 0.15, 3: 0.15, 4: 0.31}  # for a deadline of 0.1: 1.25, 1.5, 1.5 and 3.1
    rows = [a_wish(X, 0.1), *(a_publication(m, float(m), (X,)) for m in range(1, 8))]
    rows += [a_delivery(m, m + after_s, X) for m, after_s in late.items()]
    rows += [a_delivery(5, 5.05, X), a_drop(6, 6.1, "expired", "b2")]  # in time; lost; 7 on its way
    punctual = [a_wish(X, 0.1), a_publication(1, 1.0, (X,)), a_delivery(1, 1.1, X)]
    tables = tables_of({"some late": rows, "none late": punctual})
    traces = read_traces(spark, write_tables(tmp_path, tables))
    found = lateness_cdf(outcomes(traces), (1.0, 1.3, 1.6, 2.0, 4.0)).collect()
    assert [(row.run, row.strategy) for row in found] == [("some late", "d-tree")] * 5
    assert {row.ratio: row.lateness_cdf for row in found} == {
        1.0: 0.0, 1.3: 0.25, 1.6: 0.75, 2.0: 0.75, 4.0: 1.0,
    }  # fmt: skip


def test_strategies_that_share_a_run_have_no_packets_of_their_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    other = Published(2.0, "b1", 2, "t", 100, inf, 1.0, "r-tree", said(X))
    rows = [a_publication(1, 1.0, (X,)), a_delivery(1, 1.1, X), other, some_frames("data", 2)]
    traces = read_traces(spark, write_tables(tmp_path, tables_of({"mixed": rows})))
    frame = metrics.per_strategy(outcomes(traces), traces["published"], traces["carried"])
    found = {
        row.strategy: (row.delivery_ratio, row.packets_per_subscriber) for row in frame.collect()
    }
    assert found == {"d-tree": (1.0, None), "r-tree": (0.0, None)}


def test_differences_are_paired_by_seed(spark: SparkSession) -> None:
    ratios = {"d-tree": (0.90, 0.80, 0.70, 0.65), "r-tree": (0.88, 0.75, 0.69, None)}
    strategies, points = [], []
    for strategy, values in ratios.items():
        for seed, value in enumerate(values):
            run = f"{strategy} {seed}"
            others = [0.0] * (len(metrics.FIGURES) - 1)
            strategies.append((run, strategy, value, *others))
            parameters = f'{{"run.seed": "{seed}", "broker.strategy": "{strategy}"}}'
            points.append(("s", run, seed, parameters))
    names = ", ".join(f"{name} double" for name in metrics.FIGURES)
    frame = spark.createDataFrame(strategies, f"run string, strategy string, {names}")
    named = spark.createDataFrame(
        points, "study string, point string, seed long, parameters string"
    )
    found = with_paired_intervals(metrics.paired(frame, named).toPandas())
    (row,) = found[found["metric"] == metrics.FIGURES[0]].to_dict("records")
    assert (row["strategy"], row["other"], row["pairs"]) == ("d-tree", "r-tree", 3)
    test = stats.ttest_rel(ratios["d-tree"][:3], ratios["r-tree"][:3])
    low, high = test.confidence_interval(0.95)
    assert row["difference"] == pytest.approx((low + high) / 2)
    assert row["difference_interval"] == pytest.approx((high - low) / 2)


def test_schemas_are_those_of_the_rows() -> None:
    for table, row_type in TABLES.items():
        assert TRACE_TYPES[table].names == ["run", "world", *row_type.__struct_fields__]


def test_tables_that_nothing_was_written_to_are_empty(traces: Traces) -> None:
    assert traces["probed"].count() == 0
    assert traces["probed"].schema.names == TRACE_TYPES["probed"].names
    assert traces.points is None


def test_a_folder_can_be_read_while_it_is_written_to(spark: SparkSession, tmp_path: Path) -> None:
    write_tables(tmp_path, tables_of({"first": BY_HAND}), "first")
    (tmp_path / "published" / ".second.parquet").write_bytes(b"PAR1 half a file")
    traces = read_traces(spark, tmp_path)
    write_tables(tmp_path, tables_of({"second": BY_HAND}), "second")
    assert traces["published"].select("run").distinct().collect() == [("first",)]
    assert read_traces(spark, tmp_path)["published"].select("run").distinct().count() == 2


def test_a_folder_without_traces_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a folder without traces"):
        read_traces(spark, tmp_path)


@pytest.mark.parametrize(
    "delays_s", [(0.12345, 0.12346), (0.123456, 0.123456), (0.0, 9e-5), (2, 9)]
)
def test_a_distribution_is_read_at_growing_places_up_to_the_longest_delay(
    spark: SparkSession, delays_s: tuple[float, float]
) -> None:
    delays = spark.createDataFrame([(float(each),) for each in delays_s], "delay_s double")
    places = cdf_places(delays)
    assert all(one < other for one, other in pairwise(places))
    assert places[-1] == max(*delays_s, SHORTEST_S)
