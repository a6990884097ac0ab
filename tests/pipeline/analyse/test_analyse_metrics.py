"""Every metric of an analysis equals its plain-Python computation on random small runs."""

import tempfile
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from support import plain_metrics as plain
from support.traces import said, tables_of, write_tables

from tidings.core.trace import (
    Acknowledged,
    Carried,
    Delivered,
    Dropped,
    Forwarded,
    LinkChanged,
    Probed,
    Published,
    Row,
    Subscribed,
)
from tidings.pipeline.analyse.job import Analysis, analyse
from tidings.pipeline.transforms.linkload import STATES, TRIPS

pytestmark = pytest.mark.xdist_group("spark")

WINDOW_S = 40.0
TOPICS = ("t0", "t1")
CLIENTS = ("b1/c", "b2/c", "b2/d:1", "b3/c")  # a client's name may have a colon
FILTERS = {f"{client}:{of}": of for client, of in product(CLIENTS, (*TOPICS, "#"))}
FILTERS |= {"b3/$log-orders": "t0", "b3/$log-invoices": "#", "b3/$log-t1": "t1"}  # without a filter
SUBSCRIPTIONS = tuple(FILTERS)
NEIGHBOURS = ("b2", "b3")
KINDS = ("data", "repeat", "ack", "probe", "control", "gossip", "discarded")

instants = st.integers(0, 100).map(float)
deadlines = st.sampled_from([0.2, 0.5, inf])
prices = st.sampled_from([1.0, 3.0])


@st.composite
def wishes(draw: st.DrawFn) -> Row:
    name = draw(st.sampled_from(SUBSCRIPTIONS))
    broker, topic = name.split("/")[0], FILTERS[name]
    active = draw(st.sampled_from([True, True, True, False]))
    return Subscribed(
        draw(instants), broker, name, topic, "", draw(deadlines), draw(prices), active
    )


@st.composite
def stories(draw: st.DrawFn, message: int, strategy: str) -> list[Row]:
    """A publication, and whatever became of it; the clock may jump back before a delivery."""
    at, topic = draw(instants), draw(st.sampled_from(TOPICS))
    fits = [name for name, of in FILTERS.items() if of in (topic, "#")]
    wanted = tuple(draw(st.lists(st.sampled_from(fits), min_size=1, max_size=4, unique=True)))
    contract = (draw(deadlines), draw(prices))
    rows: list[Row] = [Published(at, "b1", message, topic, 100, *contract, strategy, said(*wanted))]
    for name in wanted:
        broker = name.split("/")[0]
        delays = st.sampled_from([-30.0, -0.4, 0.0, 0.1, 0.2, 0.35, 0.5, 0.7])
        for delay_s in draw(st.lists(delays, max_size=2)):
            age_s, hops = draw(st.sampled_from([0.05, 0.3, 0.9])), draw(st.integers(0, 3))
            rows.append(Delivered(at + delay_s, broker, message, age_s, hops, (name,)))
        for reason in draw(st.lists(st.sampled_from(["expired", "no-route"]), max_size=1)):
            rows.append(Dropped(at + 0.2, "b1", message, reason, (broker,)))
    return rows


@st.composite
def loads(draw: st.DrawFn) -> Row:
    frames, kind = draw(st.integers(1, 50)), draw(st.sampled_from(KINDS))
    header_bytes = 32 * frames if kind in ("data", "repeat") else 0
    neighbour = draw(st.sampled_from(NEIGHBOURS))
    return Carried(60.0, "b1", neighbour, kind, frames, 100 * frames, header_bytes)


probes = st.builds(
    Probed,
    instants,
    st.just("b1"),
    st.sampled_from(NEIGHBOURS),
    st.sampled_from([0.02, 0.03, 0.07, nan]),
)
changes = st.builds(
    LinkChanged, instants, st.just("b1"), st.sampled_from(NEIGHBOURS), st.booleans()
)


@st.composite
def transmissions(draw: st.DrawFn, number: int) -> list[Row]:
    """A message that is sent once or more often, and perhaps acknowledged."""
    at, neighbour = draw(instants), draw(st.sampled_from(NEIGHBOURS))
    rows: list[Row] = [
        Forwarded(at + attempt, "b1", number, neighbour, number, attempt, 1, 100)
        for attempt in range(1, draw(st.integers(1, 3)) + 1)
    ]
    for trip_s in draw(st.lists(st.sampled_from([0.01, 0.04, 0.2, -1.0]), max_size=2)):
        rows.append(Acknowledged(at + 3.5, "b1", neighbour, number, trip_s))
    return rows


@st.composite
def links(draw: st.DrawFn) -> list[Row]:
    """What was asked of links, once at each instant, and how they were."""
    asked = st.lists(probes, max_size=6, unique_by=lambda row: (row.recorded_at, row.neighbour))
    rows: list[Row] = [*draw(asked), *draw(st.lists(changes, max_size=4))]
    for number in range(draw(st.integers(0, 4))):
        rows += draw(transmissions(number))
    return rows


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    names = st.sampled_from(draw(st.sampled_from([("d-tree",), ("r-tree",), ("d-tree", "r-tree")])))
    rows = [*draw(st.lists(wishes(), max_size=20)), *draw(st.lists(loads(), max_size=6))]
    for message, strategy in enumerate(draw(st.lists(names, min_size=1, max_size=6))):
        rows += draw(stories(message, strategy))
    return rows + draw(links())


# Many runs at a time, as Spark's jobs take as long for one; so a failure is not made smaller.
@settings(
    max_examples=3,  # the first is the smallest: of each run one message, which is on its way
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(runs(), min_size=20, max_size=30))
def test_metrics_agree_with_a_plain_computation(
    spark: SparkSession, written: list[list[Row]]
) -> None:
    named = {f"run {number}": rows for number, rows in enumerate(written)}
    with tempfile.TemporaryDirectory() as folder:
        traces = write_tables(Path(folder), tables_of(named))
        found = analyse(spark, traces, window_s=WINDOW_S)
    for run, rows in named.items():
        check_run(only(found, run), rows)


def only(found: Analysis, run: str) -> dict[str, pd.DataFrame]:
    return {
        name: table[table["run"] == run]
        for name, table in found.tables().items()
        if "run" in table.columns
    }


def check_run(found: dict[str, pd.DataFrame], rows: list[Row]) -> None:
    pairs = plain.pairs_of(rows)
    check_strategies(found["strategies"], rows, pairs)
    check_groups(
        found["topics"],
        ["strategy", "topic"],
        pairs,
        lambda p: (p.published.strategy, p.published.topic),
    )
    check_groups(found["subscribers"], ["subscription"], pairs, lambda p: (p.subscription,))
    check_groups(
        found["windows"],
        ["strategy", "window_at"],
        pairs,
        lambda p: (p.published.strategy, p.published.recorded_at // WINDOW_S * WINDOW_S),
    )
    check_drops(found["drops"], pairs)
    check_costs(found["costs"], rows, pairs)
    check_links(found["links"], rows)
    each = plain.grouped(pairs, lambda p: p.subscription)
    tightest = found["subscribers"].set_index("subscription")["deadline_s"].to_dict()
    assert tightest == {name: min(p.deadline_s for p in group) for name, group in each.items()}
    for strategy, group in plain.grouped(pairs, lambda p: p.published.strategy).items():
        chosen = {n: t[t["strategy"] == strategy] for n, t in found.items() if "strategy" in t}
        check_reliability(chosen["reliability"], group)
        check_distributions(chosen, group)


def check_strategies(table: pd.DataFrame, rows: list[Row], pairs: list[plain.Pair]) -> None:
    published = [row.strategy for row in rows if isinstance(row, Published)]
    assert sorted(table["strategy"]) == sorted(set(published))
    for row in table.to_dict("records"):
        own = [pair for pair in pairs if pair.published.strategy == row["strategy"]]
        assert row["publications"] == published.count(row["strategy"])
        expected = plain.served(own)
        if len(table) == 1:
            expected |= plain.traffic(rows, own)
        same(row, expected)


def check_groups(table: pd.DataFrame, keys: list[str], pairs: list[plain.Pair], key: Any) -> None:
    groups = plain.grouped(pairs, key)
    by_key = {tuple(row[name] for name in keys): row for row in table.to_dict("records")}
    assert by_key.keys() == groups.keys()
    for name, group in groups.items():
        same(by_key[name], plain.served(group))


def check_drops(table: pd.DataFrame, pairs: list[plain.Pair]) -> None:
    groups = plain.grouped(
        (pair for pair in pairs if pair.reason), lambda p: (p.published.strategy, p.reason)
    )
    found = {(row["strategy"], row["reason"]): row["count"] for row in table.to_dict("records")}
    assert found == {key: len(group) for key, group in groups.items()}


def check_costs(table: pd.DataFrame, rows: list[Row], pairs: list[plain.Pair]) -> None:
    delivered = sum(pair.delay_s is not None for pair in pairs)
    expected = plain.costs(rows)
    assert set(table["part"]) == set(expected)
    for row in table.to_dict("records"):
        frames, size_bytes = expected[row["part"]]
        assert row["size_bytes"] == size_bytes
        assert row["frames"] == pytest.approx(frames or float("nan"), nan_ok=True)
        if delivered:
            assert row["bytes_per_delivery"] == pytest.approx(size_bytes / delivered)
            per_delivery = frames / delivered or float("nan")
            assert row["frames_per_delivery"] == pytest.approx(per_delivery, nan_ok=True)
        else:
            assert pd.isna(row["bytes_per_delivery"])


def check_links(table: pd.DataFrame, rows: list[Row]) -> None:
    loaded, trips, states = plain.loads(rows), plain.round_trips(rows), plain.states(rows)
    found = {(row["broker"], row["neighbour"]): row for row in table.to_dict("records")}
    assert found.keys() == loaded.keys() | trips.keys() | states.keys()
    for link, row in found.items():
        for kind, unit in product(KINDS, ("frames", "bytes")):
            assert row[f"{kind}_{unit}"] == loaded.get(link, {}).get(f"{kind}_{unit}", 0)
        same(row, trips.get(link, dict.fromkeys(TRIPS, nan)))
        same(row, states.get(link, dict.fromkeys(STATES, nan)))


def check_reliability(table: pd.DataFrame, pairs: list[plain.Pair]) -> None:
    goods = {"reliability": ("in-time", "late"), "on_time_reliability": ("in-time",)}
    for name, good in goods.items():
        found = {
            (row["level"], row["subscriber"], row["topic"]): row[name]
            for row in table.to_dict("records")
        }
        assert found == pytest.approx(plain.reliability(pairs, good))


def check_distributions(chosen: dict[str, pd.DataFrame], pairs: list[plain.Pair]) -> None:
    delays = [pair.delay_s for pair in pairs if pair.delay_s is not None]
    late = [p.delay_s / p.deadline_s for p in pairs if p.outcome == "late" and p.delay_s]
    assert len(chosen["delay_cdf"]) == 0 if not delays else len(chosen["delay_cdf"]) > 0
    for row in chosen["delay_cdf"].to_dict("records"):
        assert row["share"] == pytest.approx(plain.share_up_to(delays, row["at"]))
    if delays:
        assert chosen["delay_cdf"]["share"].max() == 1.0
    for row in chosen["lateness_cdf"].to_dict("records"):
        beside = [value for value in late if abs(value - row["ratio"]) > 1e-5]
        if len(beside) == len(late):  # at the very place, rounding decides
            assert row["lateness_cdf"] == pytest.approx(plain.share_up_to(late, row["ratio"]))


def same(row: dict[str, Any], expected: plain.Figures) -> None:
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, abs=1e-9, nan_ok=True), name
