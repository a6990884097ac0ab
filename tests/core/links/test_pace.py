"""The time per byte, from acknowledgements of a link whose rate the test knows."""

from __future__ import annotations

from math import inf
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.links.estimates import LinkEstimate, MeterSettings
from tidings.core.links.meter import FIRST_WINDOW_BYTES, LinkMeter
from tidings.core.links.pace import ENOUGH, SAMPLE_BYTES, SAMPLES, PaceMeter, weighted_median

KILOBYTE_S = 0.008  # 1 Mbit/s


def busy(meter: PaceMeter, takes: list[tuple[int, float]], at: float = 0.0) -> float:
    """Messages (size, time on the link) one after another, always with more behind them."""
    meter.acknowledged(1, inf, True, at)
    for size_bytes, takes_s in takes:
        at += takes_s
        meter.acknowledged(size_bytes, inf, True, at)
    return at


def drawn(seed: int, mean: float, deviation: float, size_bytes: int) -> list[tuple[int, float]]:
    draws = Random(seed)
    paces = [max(0.0, draws.gauss(mean, deviation)) for _ in range(SAMPLES)]
    return [(size_bytes, size_bytes * pace) for pace in paces]


@given(st.floats(1e-6, 1e-3), st.floats(0.0, 0.3), st.integers(20_000, 10**6), st.integers(0, 999))
def test_the_mean_is_found_within_its_error(
    mean: float, spread: float, size_bytes: int, seed: int
) -> None:
    meter = PaceMeter()
    busy(meter, drawn(seed, mean, spread * mean, size_bytes))
    error = 5 * 1.2533 * spread * mean / SAMPLES**0.5  # of a median: five standard errors
    assert meter.s_per_byte == pytest.approx(mean, abs=error + 1e-9)
    assert meter.deviation_s_per_byte < 3 * spread * mean + 1e-9


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_the_deviation_is_found_on_average(spread: float) -> None:
    found = []
    for seed in range(200):
        meter = PaceMeter()
        busy(meter, drawn(seed, 1e-5, spread * 1e-5, 50_000))
        found.append(meter.deviation_s_per_byte)
    assert fmean(found) == pytest.approx(spread * 1e-5, rel=0.1)


def test_the_size_of_messages_does_not_matter() -> None:
    meter, draws = PaceMeter(), Random(1)
    sizes = [draws.choice((100, 1_000, 50_000)) for _ in range(200)]
    busy(meter, [(size, size * KILOBYTE_S / 1000) for size in sizes])
    assert meter.s_per_byte == pytest.approx(KILOBYTE_S / 1000, rel=1e-6)
    assert meter.deviation_s_per_byte == pytest.approx(0.0, abs=1e-12)


def test_few_samples_claim_nothing_but_are_heeded() -> None:
    meter = PaceMeter()
    busy(meter, [(5_000, 0.040)] * (ENOUGH - 1))
    assert (meter.samples, meter.s_per_byte, meter.deviation_s_per_byte) == (ENOUGH - 1, 0.0, 0.0)
    assert meter.likely_s_per_byte == pytest.approx(8e-6)
    meter.acknowledged(5_000, inf, True, ENOUGH * 0.040)
    assert meter.s_per_byte == pytest.approx(8e-6)


def test_before_there_are_enough_what_was_configured_is_believed() -> None:
    meter = LinkMeter(MeterSettings(), LinkEstimate(0.01, 1.0, 2e-6, 1e-6))
    assert meter.estimate == LinkEstimate(0.01, 1.0, 2e-6, 1e-6)
    busy(meter.pace, [(5_000, 0.040)] * (ENOUGH - 1))
    assert meter.estimate == LinkEstimate(0.01, 1.0, 2e-6, 1e-6)


@given(st.integers(0, ENOUGH), st.floats(0.0, 1e6))
def test_one_outlier_moves_neither(place: int, outlier_s: float) -> None:
    meter, takes = PaceMeter(), [(5_000, 0.040)] * ENOUGH
    busy(meter, [*takes[:place], (5_000, outlier_s), *takes[place:]])
    assert meter.s_per_byte == pytest.approx(8e-6)
    assert meter.deviation_s_per_byte == pytest.approx(0.0, abs=1e-9)


def test_a_link_with_nothing_to_do_tells_nothing() -> None:
    meter = PaceMeter()
    for number in range(100):
        meter.acknowledged(5_000, inf, False, float(number))
    assert (meter.samples, meter.likely_s_per_byte) == (0, 0.0)


def test_acknowledgements_that_come_together_are_one_sample() -> None:
    meter, at = PaceMeter(), 0.0
    busy(meter, [])
    for _ in range(40):
        at += 0.012
        for _ in range(3):
            meter.acknowledged(500, inf, True, at)
    assert meter.s_per_byte == pytest.approx(0.012 / 1500, rel=0.01)


def test_a_link_too_fast_to_be_timed_takes_no_time() -> None:
    meter = PaceMeter()
    busy(meter, [(SAMPLE_BYTES, 0.0)] * ENOUGH)
    assert (meter.samples, meter.s_per_byte, meter.deviation_s_per_byte) == (ENOUGH, 0.0, 0.0)


def test_a_link_that_has_changed_is_believed_after_half_of_the_samples() -> None:
    meter = PaceMeter()
    end_at = busy(meter, [(5_000, 0.040)] * SAMPLES)
    for number in range(SAMPLES // 2 + 1):
        meter.acknowledged(5_000, inf, True, end_at + (number + 1) * 0.4)
    assert meter.s_per_byte == pytest.approx(8e-5)


def test_what_left_only_just_now_took_no_longer_than_that() -> None:
    """One at a time: each leaves when the one before is acknowledged, a round trip of 10 ms."""
    meter, at = LinkMeter(MeterSettings(), None), 0.0
    meter.unburdened(0.010, 0, at)
    for _ in range(ENOUGH + 1):
        at += 0.050
        meter.unburdened(0.050, 5_000, at)
        meter.carried([(0.050, 5_000, True)], True, at)
    assert meter.pace.s_per_byte == pytest.approx(8e-6)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e6, 1e6), st.booleans())))
def test_whatever_the_clock_does_the_estimate_is_a_number_from_zero(
    story: list[tuple[int, float, bool]],
) -> None:
    meter, now = LinkMeter(MeterSettings(), None), 0.0
    for size_bytes, step_s, waiting in story:
        now += step_s
        meter.answered(meter.unburdened(step_s, size_bytes, now))
        meter.carried([(step_s, size_bytes, True)], waiting, now)
        assert meter.estimate is not None
        for number in (meter.estimate.s_per_byte, meter.estimate.deviation_s_per_byte):
            assert 0.0 <= number < inf
        assert meter.estimate.delay_s >= 0.0
        assert meter.window_bytes > 0.0
        assert 0.0 < meter.timeout_s + meter.patience_s(size_bytes) < inf


def test_a_clock_that_is_set_back_spoils_no_sample() -> None:
    meter = PaceMeter()
    busy(meter, [(5_000, 0.040)] * ENOUGH, at=1_000.0)
    busy(meter, [(5_000, 0.040)] * ENOUGH, at=10.0)
    assert meter.s_per_byte == pytest.approx(8e-6)
    assert meter.deviation_s_per_byte == pytest.approx(0.0, abs=1e-9)


def test_after_an_interruption_the_gap_is_no_sample() -> None:
    meter = PaceMeter()
    end_at = busy(meter, [(5_000, 0.040)] * 3)
    meter.interrupted()
    meter.acknowledged(5_000, inf, True, end_at + 100.0)
    assert meter.samples == 3


@given(st.lists(st.tuples(st.floats(0, 1e9), st.integers(1, 100)), min_size=1))
def test_a_weighted_median_is_the_median_of_repeated_values(
    weighed: list[tuple[float, int]],
) -> None:
    repeated = sorted(value for value, weight in weighed for _ in range(weight))
    assert weighted_median(weighed) == repeated[(len(repeated) - 1) // 2]


def test_of_nothing_there_is_no_median() -> None:
    assert weighted_median([]) == 0.0


# ---- the window


def test_the_window_is_small_until_something_is_known() -> None:
    assert LinkMeter(MeterSettings(), None).window_bytes == FIRST_WINDOW_BYTES


def test_the_window_of_a_link_too_fast_to_be_timed_has_no_end() -> None:
    meter = LinkMeter(MeterSettings(), None)
    busy(meter.pace, [(SAMPLE_BYTES, 0.0)])
    assert meter.window_bytes == inf


def test_the_window_is_twice_what_the_link_carries_in_a_quiet_round_trip() -> None:
    meter = LinkMeter(MeterSettings(), None)
    meter.unburdened(0.095, 0, 0.0)
    busy(meter.pace, [(5_000, 0.040)])
    assert meter.window_bytes == pytest.approx(2 * (0.095 + 0.005) * 125_000)


# ---- what is taken off a round trip


def test_what_waited_behind_others_is_not_delay() -> None:
    meter = LinkMeter(MeterSettings(), None)
    meter.unburdened(0.010, 0, 0.0)
    end_at = busy(meter.pace, [(5_000, 0.040)] * ENOUGH)
    assert meter.unburdened(0.400, 5_000, end_at + 0.040) == pytest.approx(0.010)
    assert meter.unburdened(0.400, 0, end_at + 0.001) == pytest.approx(0.011)


def test_with_an_unknown_rate_a_larger_frame_is_waited_for_longer() -> None:
    meter = LinkMeter(MeterSettings(), None)
    meter.answered(0.010)
    meter.carried([(0.010, 100, True)], False, 1.0)
    assert meter.patience_s(100) == 0.0
    assert meter.timeout_s + meter.patience_s(50_000) > 0.4  # a link of 1 Mbit/s
    meter.carried([(0.4, 50_000, True)], False, 2.0)
    assert meter.patience_s(50_000) == 0.0, "its round trip is known"
