"""An answer that comes after its parcel was given up: too late for it, not for the timer."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import DELAY_S, LINE, Net, connected
from support.prospects import Known

from tidings.broker.frames import Data, Links
from tidings.broker.sending.link import MOST_GIVEN_UP, LinkEnd
from tidings.broker.settings import Settings
from tidings.core.links.estimates import LinkEstimate, MeterSettings
from tidings.core.links.meter import LinkMeter
from tidings.core.trace import Dropped

SLOWER = 8  # times
PAIR = ("b1", "b2")


def slowed(**settings: Any) -> Net:
    """Two brokers that know their link well, which has just become slower; probes are far apart."""
    unasked = {"probe_every_s": 1e6, "suspect_after_s": inf, "delay_window_s": 0.0}
    net = connected(PAIR, estimates="measured", exhausted="drop", **unasked, **settings)
    net.subscribe("b2")
    net.run(1.0)
    for _ in range(20):
        net.publish("b1")
        net.run(0.1)
    assert not net.rows_of(Dropped)
    net.delay_s = SLOWER * DELAY_S
    return net


def of(net: Net) -> LinkEnd:
    return net.brokers["b1"]._links["b2"]


def test_one_late_answer_teaches_the_timer_to_wait_for_the_next() -> None:
    net = slowed()
    late = net.publish("b1")
    net.run(1.0)
    assert of(net).timeout_s > 2 * net.delay_s
    for _ in range(5):
        net.publish("b1")
        net.run(0.1)
    assert [row.message for row in net.rows_of(Dropped)] == [late]
    assert of(net).delay_s == pytest.approx(net.delay_s, rel=0.3)


def test_a_late_answer_to_one_of_two_transmissions_tells_nothing() -> None:
    """Karn's rule: nobody knows which of them it answers."""
    net = slowed(transmissions=2)
    before = (of(net).timeout_s, of(net).delay_s)
    net.publish("b1")
    net.run(1.0)
    assert len(net.frames(Data, *PAIR)) == 20 + 2
    assert (of(net).timeout_s, of(net).delay_s) == before


def test_a_second_copy_of_a_late_answer_tells_nothing() -> None:
    net = slowed()
    net.publish("b1")
    net.run(1.0)
    (answer,) = [frame for _, a, _, frame in net.said[-1:] if a == "b2"]
    before = of(net).timeout_s
    net.run(5.0)
    net.tell("b1", "receive", "b2", answer)
    assert of(net).timeout_s == before


def test_what_is_remembered_of_given_up_transmissions_has_an_end_and_the_oldest_goes_first() -> (
    None
):
    link = LinkEnd("b2", Settings(), LinkEstimate(DELAY_S), Known())
    for transmission in range(MOST_GIVEN_UP + 10):
        link.give_up(transmission, float(transmission))
    assert list(link.given_up) == list(range(10, MOST_GIVEN_UP + 10))


def test_with_its_connection_a_link_loses_all_hope_of_late_answers() -> None:
    net = slowed()
    net.publish("b1")
    net.run(0.1)
    assert of(net).given_up
    net.disconnect(*PAIR)
    assert not of(net).given_up


@given(st.lists(st.floats(0.0, 10.0), min_size=1), st.floats(0.0, 20.0))
def test_after_any_history_a_timer_waits_for_the_like_of_what_just_came_late(
    history: list[float], late_s: float
) -> None:
    """With error e and RTTVAR at least e/4 after it, RFC 6298 waits for SRTT + e/8 + e or more."""
    meter = LinkMeter(MeterSettings(), None)
    for round_trip_s in history:
        meter.answered(round_trip_s)
    if late_s > meter.timeout_s:
        meter.answered(late_s)
        assert meter.timeout_s > late_s


# ---- telling the overlay


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_delay_differs_greatly_if_it_doubled_or_halved_and_not_by_a_trifle(
    delay_s: float, told_s: float
) -> None:
    link = LinkEnd("b2", Settings(), LinkEstimate(delay_s), Known())
    link.advertised_s = told_s
    small_s, large_s = sorted((delay_s, told_s))
    assert link.differs(0.010) == (large_s - small_s > small_s and large_s - small_s > 0.010)


def advertised_within(factor: float, seconds: float) -> bool:
    """Whether b1 tells of a link that became slower by a factor within this time."""
    net = connected(*LINE, estimates="measured", probe_every_s=1e6, advertise_every_s=60.0)
    net.subscribe("b2")
    net.run(60.5)  # there was an occasion to tell half a second ago
    before = len(net.frames(Links, *PAIR))
    net.delay_s = factor * DELAY_S
    for _ in range(int(seconds / 0.2)):
        net.publish("b1")
        net.run(0.2)
    return len(net.frames(Links, *PAIR)) > before


def test_a_great_change_is_told_within_a_tenth_of_the_usual_time_and_not_sooner() -> None:
    assert advertised_within(8.0, seconds=7.0)
    assert not advertised_within(8.0, seconds=4.0)


def test_a_lesser_change_waits_for_its_turn() -> None:
    assert not advertised_within(1.5, seconds=50.0)
    assert advertised_within(1.5, seconds=62.0)
