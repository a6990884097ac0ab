"""What is believed about a link, by numbers computed by hand."""

import pytest

from tidings.core.estimates import (
    FIRST_RTO_S,
    RTO_CEILING_S,
    RTO_FLOOR_S,
    LinkEstimate,
    LinkMeter,
    MeterSettings,
)


def a_meter(start: LinkEstimate | None = None) -> LinkMeter:
    return LinkMeter(MeterSettings(), start)


def test_before_any_sample_nothing_is_known_and_the_timeout_is_a_second() -> None:
    meter = a_meter()
    assert meter.estimate is None
    assert meter.timeout_s == FIRST_RTO_S == 1.0


def test_before_any_sample_what_was_configured_is_believed() -> None:
    meter = a_meter(LinkEstimate(0.1, 0.9))
    assert meter.estimate == LinkEstimate(0.1, 0.9)
    assert meter.timeout_s == pytest.approx(0.31)


def test_the_timeout_follows_rfc_6298() -> None:
    """SRTT and RTTVAR by hand: 100 ms first, then 140 ms, then 100 ms."""
    meter = a_meter()
    meter.answered(0.100)  # SRTT 0.1, RTTVAR 0.05
    assert meter.timeout_s == pytest.approx(0.1 + 4 * 0.05)
    meter.answered(0.140)  # RTTVAR 3/4 * 0.05 + 1/4 * 0.04 = 0.0475; SRTT 7/8 * 0.1 + 1/8 * 0.14
    assert meter.timeout_s == pytest.approx(0.105 + 4 * 0.0475)
    meter.answered(0.100)  # RTTVAR 3/4 * 0.0475 + 1/4 * 0.005; SRTT 7/8 * 0.105 + 1/8 * 0.1
    assert meter.timeout_s == pytest.approx(0.104375 + 4 * 0.036875)


def test_a_steady_link_keeps_the_floor_above_its_round_trip() -> None:
    meter = a_meter()
    for _ in range(200):
        meter.answered(0.050)
    assert meter.timeout_s == pytest.approx(0.050 + RTO_FLOOR_S)


def test_the_timeout_has_a_ceiling() -> None:
    meter = a_meter()
    meter.answered(100.0)
    assert meter.timeout_s == RTO_CEILING_S


def test_the_delay_is_half_the_round_trip_weighted_a_quarter_for_each_new_sample() -> None:
    meter = a_meter()
    meter.answered(0.100)
    assert meter.estimate == LinkEstimate(0.05)
    meter.answered(0.200)
    assert meter.estimate == LinkEstimate(pytest.approx(0.75 * 0.05 + 0.25 * 0.1))


def test_a_configured_delay_is_the_first_of_the_mean() -> None:
    meter = a_meter(LinkEstimate(0.1))
    meter.answered(0.120)
    assert meter.estimate == LinkEstimate(pytest.approx(0.75 * 0.1 + 0.25 * 0.06))


def test_each_probe_moves_the_delivery_ratio_by_a_twentieth() -> None:
    meter = a_meter(LinkEstimate(0.1))
    meter.probed(answered=False)
    assert meter.estimate == LinkEstimate(0.1, pytest.approx(0.95))
    meter.probed(answered=True)
    assert meter.estimate == LinkEstimate(0.1, pytest.approx(0.9525))


def test_the_delivery_ratio_stays_between_none_and_all() -> None:
    meter = a_meter(LinkEstimate(0.1))
    for _ in range(1_000):
        meter.probed(answered=False)
    assert meter.estimate is not None
    assert 0.0 <= meter.estimate.delivery_ratio < 1e-9
