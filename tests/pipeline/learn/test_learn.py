"""What is learned from made-up measurements is what they were made of."""

from collections.abc import Iterator
from math import isnan as is_nan
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from support.pages import ROOT
from support.traces import a_wish, tables_of, write_tables

from tidings.core.errors import ConfigError, TidingsError
from tidings.core.links.model import LearnedLink
from tidings.core.trace import Acknowledged, Forwarded, LinkChanged, Probed, Row
from tidings.files.folders import replaced
from tidings.files.link_model import read_link_model
from tidings.pipeline.analyse.spark_settings import (
    BROADCAST_BELOW,
    LITTLE_PLANNING,
    ONE_TASK,
    PARTITIONS,
    SMALL_BYTES,
    TINY_BYTES,
    temporary_settings,
)
from tidings.pipeline.learn import job
from tidings.pipeline.learn.job import Lesson, learn, write
from tidings.pipeline.learn.measurements import Input, checked_input
from tidings.pipeline.trace_frames import read_traces
from tidings.pipeline.transforms.links.gamma import LEVELS, fitted
from tidings.pipeline.transforms.links.history import trace_histories
from tidings.pipeline.transforms.links.prediction import (
    EXPECTED,
    LAST,
    MEAN,
    TYPICAL,
    errors_of_links,
    persistence_of_links,
)
from tidings.pipeline.transforms.links.samples import changes, trace_samples
from tidings.pipeline.transforms.links.spells import spells
from tidings.scenarios.past_rows import read_past
from tidings.sim.courses.past import RoundTrips, past_courses

pytestmark = pytest.mark.xdist_group("spark")

SEATTLE = ROOT / "scenarios" / "data" / "seattle_rtt_20x50.parquet"
LENGTH_S = 7200.0
SHIFT_S, SHAPE, SCALE_S = 0.020, 2.0, 0.010
DAY_S = 86_400
BUSY = range(8, 16)  # hours whose delays are twice as long


def chance(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def probes(a: str, b: str, down: list[tuple[float, float]], loss: float, seed: int) -> list[Row]:
    """A probe every 5 s of a link with these outages that loses frames one way with `loss`."""
    drawn, rows = chance(seed), []
    for sent_at in np.arange(0.0, LENGTH_S, 5.0).tolist():
        round_trip_s = 2 * (SHIFT_S + float(drawn.gamma(SHAPE, SCALE_S)))
        lost = drawn.random() < 1 - (1 - loss) ** 2
        if lost or any(start <= sent_at < end for start, end in down):
            rows.append(Probed(sent_at + 1.0, a, b, nan))
        else:
            rows.append(Probed(sent_at + round_trip_s, a, b, round_trip_s))
    return rows


def messages(a: str, b: str, sizes: list[int], pace: tuple[float, float]) -> Iterator[Row]:
    """A message every 2 s of a link of 30 ms that needs this long per byte (mean, deviation)."""
    drawn = chance(99)
    for number, sent_at in enumerate(np.arange(0.0, LENGTH_S, 2.0).tolist()):
        size_bytes = sizes[number % len(sizes)]
        round_trip_s = 0.060 + size_bytes * float(drawn.normal(*pace))
        yield Forwarded(sent_at, a, number, b, number, 1, 1, size_bytes)
        yield Acknowledged(sent_at + round_trip_s, a, b, number, round_trip_s)


def hourly_probes(a: str, b: str) -> Iterator[Row]:
    for sent_at in np.arange(0.0, 2 * DAY_S, 300.0).tolist():
        round_trip_s = 0.08 if int(sent_at / 3600) % 24 in BUSY else 0.04
        yield Probed(sent_at + round_trip_s, a, b, round_trip_s)


def restless_probes(a: str, b: str) -> Iterator[Row]:
    """Hours as above, times a level drawn anew for each probe; always two, a slice apart."""
    drawn = chance(7)
    for sent_at in sorted(at + gap_s for at in range(0, 4 * DAY_S, 600) for gap_s in (0.0, 10.0)):
        level_s = SHIFT_S + float(drawn.gamma(SHAPE, SCALE_S))
        round_trip_s = 2 * level_s * (2.0 if int(sent_at / 3600) % 24 in BUSY else 1.0)
        yield Probed(sent_at + round_trip_s, a, b, round_trip_s)


def outages(seed: int) -> list[tuple[float, float]]:
    """Twelve of 60 s, at drawn instants of their own parts of the time."""
    starts = np.arange(12) * 600.0 + chance(seed).uniform(50.0, 500.0, 12)
    return [(start, start + 60.0) for start in starts.tolist()]


def quiet_outage(a: str, b: str) -> list[Row]:
    """A neighbour that goes away, is not asked meanwhile, and comes back."""
    kept = [row for row in probes(a, b, [], 0.0, 6) if not 1000.0 <= row.recorded_at < 1200.0]
    return [*kept, LinkChanged(1000.0, a, b, False), LinkChanged(1200.0, a, b, True)]


def latecomer(a: str, b: str) -> list[Row]:
    """A neighbour that is asked for the first time when half of the run is over."""
    kept = [row for row in probes(a, b, [], 0.0, 8) if row.recorded_at >= LENGTH_S / 2]
    return [*kept, LinkChanged(0.0, a, b, False), LinkChanged(LENGTH_S / 2, a, b, True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    together = outages(1)
    rows: list[Row] = [
        *probes("a", "b", [], 0.05, 1),
        *probes("a", "c", together, 0.0, 2),
        *probes("c", "a", together, 0.0, 3),
        *probes("d", "a", together, 0.0, 4),
        *probes("b", "d", outages(2), 0.0, 5),
        *quiet_outage("b", "c"),
        *latecomer("l", "c"),
        *(Probed(at + 1.0, "a", "n", nan) for at in np.arange(0.0, LENGTH_S, 5.0).tolist()),
        *messages("a", "m", [200, 1000, 4000], (8e-6, 1e-6)),
        *messages("a", "s", [200], (8e-6, 0.0)),
        Probed(5.0, "a", "b", -0.5),  # a clock that was set back
    ]
    days = [*hourly_probes("x", "y"), *restless_probes("u", "v")]
    days += [Probed(360.0 * number, "z", "z", 0.0) for number in range(480)]
    tables = tables_of({"one": rows, "two": days})
    folder = write_tables(tmp_path_factory.mktemp("traces"), tables)
    again = {"probed": tables["probed"]}  # the same rows once more
    return write_tables(folder, again, "again")


@pytest.fixture(scope="module")
def lesson(spark: SparkSession, folder: Path) -> Lesson:
    return learn(spark, checked_input(folder, None, 0.2))


@pytest.fixture(scope="module")
def links(lesson: Lesson) -> dict[str, LearnedLink]:
    return {link.source + link.target: link for link in lesson.links}


def test_every_direction_that_was_asked_has_a_row(links: dict[str, LearnedLink]) -> None:
    expected = ["ab", "ac", "am", "an", "as", "bc", "bd", "ca", "da", "lc", "uv", "xy", "zz"]
    assert sorted(links) == expected


def test_a_link_that_never_answered_is_known_to_be_dead(links: dict[str, LearnedLink]) -> None:
    link = links["an"]
    assert (link.samples, link.delay_mean_s) == (0, None)
    reasons = {link.delay_reason, link.persistence_reason, link.hourly_reason}
    assert reasons == {"no answer told a round trip"}
    assert (link.availability, link.outages) == (0.0, 1)
    assert link.estimate() is None


def test_what_was_reported_before_a_link_was_watched_is_not_counted(
    links: dict[str, LearnedLink],
) -> None:
    assert (links["lc"].outages, links["lc"].availability) == (0, 1.0)


def test_delays_and_losses_are_found_and_rows_that_are_there_twice_count_once(
    links: dict[str, LearnedLink],
) -> None:
    link = links["ab"]
    assert link.samples == pytest.approx(1440 * 0.95**2, rel=0.05)
    assert link.delay_mean_s == pytest.approx(SHIFT_S + SHAPE * SCALE_S, rel=0.03)
    assert link.delay_variance_s2 == pytest.approx(SHAPE * SCALE_S**2, rel=0.2)
    assert link.delay_shift_s == pytest.approx(SHIFT_S, rel=0.15)
    assert link.delay_shape == pytest.approx(SHAPE, rel=0.35)
    assert link.delay_fit_distance is not None
    assert link.delay_fit_distance < 0.05
    assert link.delivery_ratio == pytest.approx(0.95, abs=0.01)
    assert link.persistence == pytest.approx(0.0, abs=0.1)


def test_outages_are_found_with_their_length(links: dict[str, LearnedLink]) -> None:
    for name in ("ac", "bd"):
        link = links[name]
        assert link.outages == 12
        assert link.outage_mean_s == pytest.approx(60.0, abs=1.0)
        assert link.availability == pytest.approx(1 - 12 * 60 / LENGTH_S, abs=0.005)
        assert link.delivery_ratio == 1.0
    assert links["bc"].outages == 1
    assert links["bc"].outage_mean_s == pytest.approx(200.0, abs=0.1)


def test_links_that_fail_together_are_a_group(links: dict[str, LearnedLink]) -> None:
    assert links["ac"].group == links["ca"].group == links["da"].group == 1
    assert links["bd"].group is None
    assert links["bd"].group_reason == "its outages do not coincide with those of another link"
    assert links["ab"].group_reason == "fewer than 2 outages were seen"


def test_messages_of_different_size_tell_the_time_per_kilobyte(
    links: dict[str, LearnedLink],
) -> None:
    link = links["am"]
    assert link.transfer_mean_s_per_kilobyte == pytest.approx(0.008, rel=0.02)
    assert link.transfer_variance_s2_per_kilobyte2 == pytest.approx(1e-6, rel=0.2)
    assert link.delay_mean_s == pytest.approx(0.030, rel=0.02)  # of a frame of no size


def test_what_the_traces_cannot_tell_is_absent_with_its_reason(
    links: dict[str, LearnedLink],
) -> None:
    assert links["as"].transfer_mean_s_per_kilobyte is None
    assert links["as"].transfer_reason == "all messages were about the same size"
    assert links["ab"].transfer_reason == "no message was acknowledged"
    assert links["ab"].hourly_factors is None
    assert links["ab"].hourly_reason == "2 of 24 hours of the day were seen"
    assert links["ab"].outage_reason == "no outage was seen"
    assert links["zz"].hourly_reason == "no delay is longer than zero"


def test_hours_have_their_factors(links: dict[str, LearnedLink]) -> None:
    factors = links["xy"].hourly_factors
    assert factors is not None
    expected = [1.5 if hour in BUSY else 0.75 for hour in range(24)]
    assert factors == pytest.approx(expected, rel=1e-6)


def test_what_the_hour_explains_is_not_chance_once_more(links: dict[str, LearnedLink]) -> None:
    steady, link = links["xy"], links["uv"]
    assert (steady.delay_shift_s, steady.delay_scale_s) == (pytest.approx(0.08 / 3), 0.0)
    assert link.delay_shape is not None
    assert link.delay_scale_s is not None
    usual = 4 / 3  # a mean hour, of the quiet ones
    spread = link.delay_shape**0.5 * link.delay_scale_s
    assert spread == pytest.approx(usual * SHAPE**0.5 * SCALE_S, rel=0.1)
    assert link.persistence == pytest.approx(0.0, abs=0.1)


def test_a_model_is_written_as_one_file_and_read_back(lesson: Lesson, tmp_path: Path) -> None:
    path = write(lesson, tmp_path / "weather.parquet")
    model = read_link_model(path)
    assert list(model.links.values()) == lesson.links
    assert model.slice_s == 10.0
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_to_its_end_leaves_nothing(tmp_path: Path) -> None:
    def half(draft: Path) -> None:
        draft.write_text("half of it")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        replaced(tmp_path / "model.parquet", half)
    assert list(tmp_path.iterdir()) == []


# ---- what a replay makes of the same traces


def a_random_link(a: str, b: str, seed: int) -> Iterator[Row]:
    """Probes, messages that are repeated, losses, outages, reports, and a clock set back."""
    drawn, length_s = chance(seed, 11), 600.0
    starts = np.cumsum(drawn.exponential(150.0, 4))
    down = [(start, start + drawn.exponential(30.0)) for start in starts.tolist()]
    loss = float(drawn.choice([0.0, 0.1, 0.4]))

    def is_lost(at: float) -> bool:
        return any(start <= at < end for start, end in down) or drawn.random() < loss

    for at in np.arange(0.0, length_s, 5.0).tolist():
        took_s = nan if is_lost(at) else -1.0 if drawn.random() < 0.02 else 0.05
        yield Probed(at + (1.0 if is_nan(took_s) else took_s), a, b, took_s)
    for number, first_at in enumerate(sorted(drawn.uniform(0.0, length_s - 5.0, 150).tolist())):
        for attempt in range(1, int(drawn.integers(2, 5))):
            at = first_at + 0.7 * (attempt - 1)
            yield Forwarded(at, a, number, b, number, attempt, 1, 100)
            if not is_lost(at):
                yield Acknowledged(at + 0.05, a, b, number, 0.05)
                break
    for start, end in down[:2]:
        yield LinkChanged(start + 0.5, a, b, False)
        yield LinkChanged(end + 0.5, a, b, True)


def test_a_replay_sees_the_outages_that_are_learned(spark: SparkSession, tmp_path: Path) -> None:
    pairs = [(f"a{number:02}", f"b{number:02}") for number in range(30)]
    rows = [row for seed, pair in enumerate(pairs) for row in a_random_link(*pair, seed)]
    tables = tables_of({"one": rows})
    write_tables(write_tables(tmp_path, tables), {"forwarded": tables["forwarded"][:500]}, "copy")
    traces = read_traces(spark, tmp_path)
    samples, noticed = trace_samples(traces), changes(traces["link_changed"])
    histories = trace_histories(samples, noticed, spells(traces)).collect()
    learned = {(h.source, h.target): [(o.from_s, o.to_s) for o in h.outages] for h in histories}
    past = past_courses(read_past(tmp_path, 1.0), pairs, RoundTrips(0.0, True))
    replayed = {pair: list(past.of(*pair).outages) for pair in pairs}
    assert sum(map(len, learned.values())) > 30
    assert replayed == learned


# ---- a table of round trips


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six real hosts; one pair has no measurement in two spells of five slices."""
    rows = pq.read_table(SEATTLE).to_pandas()
    hosts = sorted(rows["source"].unique())[:6]
    rows = rows[rows["source"].isin(hosts) & rows["target"].isin(hosts)]
    slices = sorted(rows["slice"].unique())
    gone = rows["slice"].isin([*slices[10:15], *slices[30:35]])
    pair = (rows["source"] == hosts[0]) & (rows["target"] == hosts[1])
    path = tmp_path_factory.mktemp("table") / "rtt.parquet"
    pq.write_table(pa.Table.from_pandas(rows[~(gone & pair)], preserve_index=False), path)
    return path


@pytest.fixture(scope="module")
def of_table(spark: SparkSession, table: Path) -> Lesson:
    return learn(spark, checked_input(table, 60.0, 0.2))


def test_a_table_tells_the_same_as_plain_arithmetic(of_table: Lesson, table: Path) -> None:
    rows = pq.read_table(table).to_pandas()
    means = (rows.groupby(["source", "target"])["rtt_ms"].mean() / 2000).to_dict()
    learned = {(int(x.source[1:]), int(x.target[1:])): x.delay_mean_s for x in of_table.links}
    assert learned == pytest.approx(means, rel=1e-6)
    assert all(link.source.startswith("h") for link in of_table.links)


def test_slices_without_a_measurement_are_outages(of_table: Lesson) -> None:
    (failed,) = (link for link in of_table.links if link.outages == 2)
    assert failed.outage_mean_s == pytest.approx(300.0)
    assert failed.availability == pytest.approx(0.8)


def test_a_table_has_no_sizes_no_clock_and_no_losses(of_table: Lesson) -> None:
    for link in of_table.links:
        unknown = (link.transfer_mean_s_per_kilobyte, link.hourly_factors, link.delivery_ratio)
        assert unknown == (None, None, None)
        assert link.transfer_reason == "a table of round trips has no sizes"
        assert link.hourly_reason == "a table of round trips has no clock"
        assert link.delivery_reason is not None


def test_predictions_are_tried_on_what_was_held_back(of_table: Lesson, table: Path) -> None:
    """The naive predictors, computed once more without Spark."""
    rows = pq.read_table(table).to_pandas()
    grid = rows.pivot_table(index=["source", "target"], columns="slice", values="rtt_ms") / 2
    values = grid.to_numpy()
    means = np.nanmean(values[:, :40], axis=1)
    held = values[:, 40:]
    mae = {MEAN: np.abs(held - means[:, None]).mean()}
    mae[LAST] = np.abs(held - values[:, 39:49]).mean()
    got = of_table.prediction.set_index(["horizon", "predictor"])
    assert set(got.index) == {(h, p) for h in (1, 10) for p in (LAST, MEAN, EXPECTED, TYPICAL)}
    assert got.loc[(1, MEAN), "mae_ms"] == pytest.approx(mae[MEAN], rel=1e-6)
    assert got.loc[(1, LAST), "mae_ms"] == pytest.approx(mae[LAST], rel=1e-6)
    assert (got["slices"] == held.size).all()


# ---- the parts


def series_of(values: np.ndarray) -> pa.Table:
    count = len(values)
    columns = {"run": "r", "source": "a", "target": "b", "slice": range(count), "delay_s": values}
    columns |= {"level_s": values}
    series = pd.DataFrame(columns).assign(held_back=lambda frame: frame["slice"] >= 0.8 * count)
    return pa.Table.from_pandas(series)


def test_the_model_predicts_fading_deviations_better_than_either_naive_one() -> None:
    drawn, values = chance(5), [0.0]
    for fresh in drawn.standard_normal(5000):
        values.append(0.6 * values[-1] + 0.8 * fresh)
    series = series_of(0.1 + 0.01 * np.array(values))
    rows = errors_of_links(series).to_pandas()
    squared = rows[rows["horizon"] == 1].set_index("predictor")["squared_s2"]
    assert squared[EXPECTED] < 0.85 * min(squared[LAST], squared[MEAN])
    (lasting,) = persistence_of_links(series)["persistence"].to_pylist()
    assert lasting == pytest.approx(0.6, abs=0.05)


def test_a_link_with_one_slice_predicts_nothing() -> None:
    series = series_of(np.array([0.1]))
    assert errors_of_links(series).num_rows == 0
    assert persistence_of_links(series)["persistence"].to_pylist() == [None]


@given(st.floats(0.5, 20.0), st.floats(0.001, 0.1), st.floats(0.0, 0.2), st.integers(0, 2**32 - 1))
def test_a_fitted_gamma_keeps_the_mean_and_is_close(
    shape: float, scale_s: float, shift_s: float, seed: int
) -> None:
    samples = shift_s + np.random.default_rng(seed).gamma(shape, scale_s, 3000)
    quantiles = np.quantile(samples, LEVELS)
    ((shift,), (fit_shape,), (scale,), (distance,)) = fitted(
        samples.mean(keepdims=True), quantiles[np.newaxis]
    )
    assert shift + fit_shape * scale == pytest.approx(samples.mean())
    assert 0 <= shift <= quantiles.min()
    assert distance < 0.08


def test_a_delay_that_never_changes_is_all_shift() -> None:
    found = fitted(np.array([0.02]), np.full((1, len(LEVELS)), 0.02))
    assert found == ([0.02], [1.0], [0.0], [0.0])


# ---- what cannot be learned from


def refused(path: Path, slice_s: float | None = None, hold_back: float = 0.2) -> str:
    with pytest.raises(TidingsError) as caught:
        checked_input(path, slice_s, hold_back)
    return str(caught.value)


def test_other_files_and_folders_are_refused(tmp_path: Path) -> None:
    assert "nothing: No such file or directory." in refused(tmp_path / "nothing")
    assert "a folder without traces" in refused(tmp_path)
    (tmp_path / "x.parquet").write_text("not Parquet")
    assert "a whole Parquet file" in refused(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"price": [1.0]}, "slice is missing"),
        ({"slice": [1], "source": [0], "target": [1]}, "rtt_ms is missing"),
        ({"slice": ["a"], "source": [0], "target": [1], "rtt_ms": [1.0]}, "slice counts"),
        ({"slice": [1], "source": [0], "target": ["b"], "rtt_ms": [1.0]}, "both numbers or both"),
        ({"slice": [1], "source": [0.5], "target": [1.5], "rtt_ms": [1.0]}, "source double"),
        ({"slice": pa.array([], pa.int16()), "source": [], "target": []}, "rows is 0"),
    ],
)
def test_tables_that_are_none_are_refused(
    columns: dict[str, Any], said: str, tmp_path: Path
) -> None:
    if said == "rows is 0":
        columns = columns | {"rtt_ms": pa.array([], pa.float32())}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert said in refused(tmp_path / "x.parquet")


def test_a_small_input_is_learned_from_without_compiling_plans(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = dict.fromkeys(LITTLE_PLANNING, "true") | {"spark.sql.codegen.factoryMode": "FALLBACK"}
    usual |= {PARTITIONS: "7", BROADCAST_BELOW: "1000"}
    given = checked_input(table, None, 0.2)

    def settings() -> dict[str, str]:
        return {name: str(spark.conf.get(name)) for name in usual}

    monkeypatch.setattr(job, "_learned", lambda *_: settings())
    with temporary_settings(spark, usual):
        for size_bytes, wanted in (
            (TINY_BYTES - 1, LITTLE_PLANNING | ONE_TASK),
            (SMALL_BYTES - 1, LITTLE_PLANNING),
            (SMALL_BYTES, {}),
        ):
            monkeypatch.setattr(Input, "size_bytes", lambda _, size=size_bytes: size)
            assert learn(spark, given) == usual | wanted
            assert settings() == usual


def test_traces_without_hops_say_what_to_set(tmp_path: Path) -> None:
    write_tables(tmp_path, tables_of({"one": [a_wish("b1/x:t")]}))
    assert 'set trace = "hops" under [broker]' in refused(tmp_path)


def test_impossible_options_are_refused(table: Path) -> None:
    assert "--slice-s" in refused(table, slice_s=0.0)
    assert "--hold-back" in refused(table, hold_back=1.0)
    with pytest.raises(ConfigError, match="--probe-timeout-s"):
        checked_input(table, None, 0.2, probe_timeout_s=-1.0)


def test_traces_in_which_nothing_was_answered_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    silent = [Probed(float(at), "a", "b", nan) for at in range(20)]
    write_tables(tmp_path, tables_of({"one": silent}))
    with pytest.raises(ConfigError, match="probes or messages that were answered"):
        learn(spark, checked_input(tmp_path, None, 0.2))
