"""What is believed about a link, by numbers computed by hand."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.links.estimates import LinkEstimate, MeterSettings
from tidings.core.links.meter import FIRST_RTO_S, RTO_CEILING_S, RTO_FLOOR_S, LinkMeter


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


def test_each_probe_moves_the_delivery_ratio_by_a_twentieth_and_availability_by_a_thousandth() -> (
    None
):
    meter = a_meter(LinkEstimate(0.1))
    meter.probed(answered=False)
    assert meter.estimate == LinkEstimate(
        0.1, pytest.approx(0.95), availability=pytest.approx(0.999)
    )
    meter.probed(answered=True)
    assert meter.estimate == LinkEstimate(
        0.1, pytest.approx(0.9525), availability=pytest.approx(0.999 + 0.001 * 0.001)
    )


def test_the_delivery_ratio_stays_between_none_and_all() -> None:
    meter = a_meter(LinkEstimate(0.1))
    for _ in range(1_000):
        meter.probed(answered=False)
    assert meter.estimate is not None
    assert 0.0 <= meter.estimate.delivery_ratio < 1e-9


# ---- laws


def weighted(start: float, samples: list[float], weight: float) -> float:
    """The closed form of an exponentially weighted mean: no state, one sum."""
    n = len(samples)
    return (1 - weight) ** n * start + sum(
        weight * (1 - weight) ** (n - 1 - i) * sample for i, sample in enumerate(samples)
    )


weight = st.floats(0.001, 1.0)


@given(weight, st.lists(st.floats(0.0, 10.0), min_size=1, max_size=40))
def test_the_delay_is_the_weighted_mean_of_half_round_trips(
    new: float, round_trips_s: list[float]
) -> None:
    meter = LinkMeter(MeterSettings(delay_weight=new), None)
    for round_trip_s in round_trips_s:
        meter.answered(round_trip_s)
    one_way_s = [round_trip_s / 2 for round_trip_s in round_trips_s]
    assert meter.estimate is not None
    expected_s = weighted(one_way_s[0], one_way_s[1:], new)
    assert meter.estimate.delay_s == pytest.approx(expected_s, abs=1e-12)
    assert min(one_way_s) - 1e-9 <= meter.estimate.delay_s <= max(one_way_s) + 1e-9


@given(weight, weight, st.lists(st.booleans(), max_size=60), st.floats(0, 1), st.floats(0, 1))
def test_loss_and_availability_are_weighted_means_of_the_same_outcomes(
    short: float, long: float, outcomes: list[bool], ratio: float, availability: float
) -> None:
    settings = MeterSettings(loss_weight=short, availability_weight=long)
    meter = LinkMeter(settings, LinkEstimate(0.1, ratio, availability=availability))
    for answered in outcomes:
        meter.probed(answered)
    samples = [float(answered) for answered in outcomes]
    assert meter.estimate is not None
    assert meter.estimate.delivery_ratio == pytest.approx(weighted(ratio, samples, short))
    assert meter.estimate.availability == pytest.approx(weighted(availability, samples, long))
    assert meter.estimate.delay_s == 0.1
    assert meter.estimate.is_sane()


@pytest.mark.parametrize("bad", [-0.1, nan, inf, -inf, 1e10])
def test_no_link_takes_a_time_that_is_negative_endless_or_no_number(bad: float) -> None:
    assert LinkEstimate(0.1, 0.5, 1e-6, 1e-7, 0.5).is_sane()
    assert LinkEstimate(0.0, 0.0, availability=0.0).is_sane()
    assert not LinkEstimate(bad).is_sane()
    assert not LinkEstimate(0.1, s_per_byte=bad).is_sane()
    assert not LinkEstimate(0.1, deviation_s_per_byte=bad).is_sane()


@pytest.mark.parametrize("bad", [-0.1, nan, inf, 1.1])
def test_no_ratio_is_outside_of_none_and_all(bad: float) -> None:
    assert not LinkEstimate(0.1, bad).is_sane()
    assert not LinkEstimate(0.1, availability=bad).is_sane()


def test_while_a_link_is_gone_its_availability_falls_as_if_it_were_probed() -> None:
    gone, probed = (LinkMeter(MeterSettings(), LinkEstimate(0.01)) for _ in range(2))
    gone.missed(50.0)
    for _ in range(50):
        probed.probed(answered=False)
    assert gone.estimate is not None
    assert probed.estimate is not None
    assert gone.estimate.availability == pytest.approx(probed.estimate.availability)


# ---- busy hosts

WINDOW_S = 0.5
PATIENT = MeterSettings(delay_window_s=WINDOW_S)


def asked(meter: LinkMeter, round_trip_s: float, now: float, lag_s: float = 0.0) -> None:
    """A probe is answered."""
    meter.answered(meter.unburdened(round_trip_s, 0, now), lag_s, now)


def known_delay_s(meter: LinkMeter) -> float:
    assert meter.estimate is not None
    return meter.estimate.delay_s


def test_late_answers_of_a_busy_host_lengthen_the_timeout_and_not_the_delay() -> None:
    meter, plain = LinkMeter(PATIENT, None), a_meter()
    for number in range(100):
        for each in (meter, plain):
            asked(each, 0.002 if number % 10 == 0 else 0.150, now=number * 0.04)
    assert known_delay_s(meter) == pytest.approx(0.001)
    assert known_delay_s(plain) > 0.050
    assert meter.timeout_s == plain.timeout_s > 0.150


def test_a_link_that_has_become_longer_is_believed_when_the_window_has_passed() -> None:
    meter = LinkMeter(PATIENT, None)
    asked(meter, 0.010, now=0.0)
    asked(meter, 0.200, now=WINDOW_S)
    assert known_delay_s(meter) == pytest.approx(0.005)
    for number in range(1, 20):
        asked(meter, 0.200, now=WINDOW_S + number * 0.05)
    assert known_delay_s(meter) == pytest.approx(0.100, rel=0.05)


def test_of_answers_to_what_left_apart_the_last_tells_the_delay_and_the_first_the_timeout() -> None:
    """One that is busy reads many frames at once: the first has waited for that, the last not."""
    meter, first, last = (LinkMeter(PATIENT, None) for _ in range(3))
    for number in range(50):
        now = number * 0.05
        meter.answered(0.080, 0.0, now, shortest_s=0.010)
        first.answered(0.080, 0.0, now)
        last.answered(0.010, 0.0, now)
    assert known_delay_s(meter) == known_delay_s(last) == pytest.approx(0.005)
    assert meter.timeout_s == first.timeout_s


def test_answers_that_come_together_are_one_sample() -> None:
    meter = LinkMeter(PATIENT, None)
    for number in range(10):
        asked(meter, 0.002, now=number * 1.0)
    for _ in range(100):  # a burst that was read at once
        asked(meter, 0.060, now=20.0)
    assert known_delay_s(meter) == pytest.approx(0.001 + 0.25 * 0.029)


def test_what_our_own_timers_are_late_is_no_delay_of_the_link() -> None:
    meter = LinkMeter(PATIENT, None)
    asked(meter, 0.010, now=0.0)
    for number in range(1, 10):
        asked(meter, 0.060, now=number * 10.0, lag_s=0.050)
    assert known_delay_s(meter) < 0.030
