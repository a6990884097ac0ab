"""What few or odd measurements cannot tell is not learned from them."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from scipy.stats import gamma, kstest

from tidings.pipeline.transforms.links.delay import delay_figures, hourly
from tidings.pipeline.transforms.links.gamma import LEVELS, fitted
from tidings.pipeline.transforms.links.prediction import ENOUGH_PAIRS, persistence_of_links

pytestmark = pytest.mark.xdist_group("spark")

DAY_S = 86_400.0


# ---- the gamma


class Fit(NamedTuple):
    shift_s: float
    shape: float
    scale_s: float
    distance: float


def the_fit(samples: np.ndarray) -> Fit:
    fits = fitted(samples.mean(keepdims=True), np.quantile(samples, LEVELS)[np.newaxis])
    fit = Fit(*(values.item() for values in fits))
    assert fit.shape > 0
    return fit


@given(st.floats(0.5, 20.0), st.floats(0.0, 0.05), st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_a_few_delays_of_zero_do_not_spoil_a_distribution(
    shape: float, shift_s: float, zeros: int, seed: int
) -> None:
    samples = shift_s + np.random.default_rng(seed).gamma(shape, 0.01, 3000)
    without = the_fit(samples)
    samples[:zeros] = 0.0
    fit = the_fit(samples)
    assert fit.shift_s + fit.shape * fit.scale_s == pytest.approx(samples.mean())
    assert fit.distance < without.distance + zeros / 3000 + 0.02


@given(st.floats(0.0, 0.9), st.integers(0, 2**32 - 1))
def test_the_distance_is_kolmogorovs_of_the_distribution_that_is_told(
    zeros: float, seed: int
) -> None:
    drawn = np.random.default_rng(seed)
    samples = 0.02 + drawn.lognormal(-4.0, 1.0, 5000)
    samples[drawn.random(5000) < zeros] = 0.0
    fit = the_fit(samples)
    told = gamma(fit.shape, loc=fit.shift_s, scale=fit.scale_s)
    assert fit.distance == pytest.approx(kstest(samples, told.cdf).statistic, abs=0.02)


def test_delays_that_are_nearly_all_alike_have_no_gamma_and_a_reason(spark: SparkSession) -> None:
    alike, zeros, spread = np.full(1000, 0.02), np.zeros(1000), np.linspace(0.01, 0.03, 1000)
    alike[0] = zeros[0] = spread[0] = 1.0
    delays = {"alike": alike, "zeros": zeros, "spread": spread}
    rows = [
        ("r", "a", name, float(at), float(delay_s), float(delay_s))
        for name, values in delays.items()
        for at, delay_s in enumerate(values)
    ]
    names = ["run", "source", "target", "sent_at", "delay_s", "level_s"]
    levels = spark.createDataFrame(pd.DataFrame(rows, columns=names))
    figures = {row.target: row for row in delay_figures(levels).collect()}
    for name in ("alike", "zeros"):
        gamma_of = [figures[name][f"delay_{part}"] for part in ("shift_s", "shape", "scale_s")]
        assert gamma_of == [None, None, None]
        assert figures[name].delay_reason == (
            "nearly all round trips are alike, few are not: no gamma"
        )
        assert figures[name].delay_mean_s == pytest.approx(delays[name].mean())
    assert figures["spread"].delay_shape > 0
    assert figures["spread"].delay_reason is None


# ---- hours of the day


def days_of(target: str, days: list[int], each_hour: int, usual_s: float = 0.02) -> list[Any]:
    """So many delays in every hour of these days; at 3 h they are five times as long."""
    return [
        ("r", "a", target, day * DAY_S + 3600.0 * (hour + number / each_hour), delay_s)
        for day in days
        for hour in range(24)
        for number, delay_s in enumerate([usual_s * (5 if hour == 3 else 1)] * each_hour)
    ]


def test_a_pattern_takes_two_days_and_enough_round_trips_in_every_hour(
    spark: SparkSession,
) -> None:
    whole = days_of("whole", [0, 1], 10)
    rows = [
        *whole,
        *days_of("one-sample", [4], 1),
        *days_of("one-day", [4], 30),
        *days_of("few", [0, 1], 9),
        *(("r", "a", "one-night", *row[3:]) for row in whole if not DAY_S <= row[3] < DAY_S + 4e4),
        *days_of("one-night", [0], 30),
        *(("r", "a", "hours", *row[3:]) for row in whole if row[3] % DAY_S < DAY_S / 2),
        *days_of("instant", [0, 1], 10, usual_s=0.0),
    ]
    names = ["run", "source", "target", "sent_at", "delay_s"]
    found = {row.target: row for row in hourly(spark.createDataFrame(rows, names)).collect()}
    reasons = {target: row.hourly_reason for target, row in found.items()}
    assert reasons == {
        "whole": None,
        "one-sample": "an hour of the day was seen on one day only",
        "one-day": "an hour of the day was seen on one day only",
        "few": "an hour of the day has fewer than 20 round trips",
        "one-night": "an hour of the day was seen on one day only",
        "hours": "12 of 24 hours of the day were seen",
        "instant": "no delay is longer than zero",
    }
    assert all((row.hourly_factors is None) == (t != "whole") for t, row in found.items())
    usual = 24 / 28
    expected = [5 * usual if hour == 3 else usual for hour in range(24)]
    assert found["whole"].hourly_factors == pytest.approx(expected)


# ---- persistence


def persistence_of(slices: np.ndarray, levels_s: np.ndarray, runs: np.ndarray) -> float | None:
    columns = {"run": runs, "source": "a", "target": "b", "slice": slices, "delay_s": levels_s}
    series = pd.DataFrame(columns | {"level_s": levels_s}).sort_values(["run", "slice"])
    (found,) = persistence_of_links(pa.Table.from_pandas(series))["persistence"].to_pylist()
    return found


def fading(keep: float, count: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed)
    values = [drawn.standard_normal()]
    for fresh in drawn.standard_normal(count - 1):
        values.append(keep * values[-1] + (1 - keep**2) ** 0.5 * fresh)
    return 0.1 + 0.01 * np.array(values)


def test_what_is_left_after_one_slice_is_found_however_many_are_missing() -> None:
    levels_s, drawn = fading(0.9, 40_000, 5), np.random.default_rng(6)
    seen = np.flatnonzero(drawn.random(levels_s.size) < 0.2)
    found = persistence_of(seen, levels_s[seen], np.full(seen.size, "r"))
    assert found == pytest.approx(0.9, abs=0.03)


@given(st.lists(st.tuples(st.sampled_from("rs"), st.integers(0, 60)), unique=True, min_size=1))
def test_persistence_is_told_by_slices_that_follow_each_other(cells: list[Any]) -> None:
    drawn = np.random.default_rng(len(cells))
    levels_s = dict(zip(cells, drawn.random(len(cells)).tolist(), strict=True))
    pairs = [
        (levels_s[run, number - 1], came_s)
        for (run, number), came_s in levels_s.items()
        if (run, number - 1) in levels_s
    ]
    runs, slices = (np.array(part) for part in zip(*cells, strict=True))
    found = persistence_of(slices, np.array(list(levels_s.values())), runs)
    if len(pairs) < ENOUGH_PAIRS:
        assert found is None
        return
    known_s, came_s = np.array(pairs).T - np.mean([came_s for _, came_s in pairs])
    expected = np.linalg.lstsq(known_s[:, np.newaxis], came_s, rcond=None)[0][0]
    assert found == pytest.approx(min(1.0, max(0.0, expected)), abs=1e-9)


def test_a_delay_that_never_changes_does_not_last_however_it_is_rounded() -> None:
    for level_s in np.random.default_rng(8).random(50):
        steady = persistence_of(np.arange(400), np.full(400, level_s), np.full(400, "r"))
        assert steady == 0.0
