"""A host that is busy is not taken for a dead link."""

from math import inf

import pytest
from support.builders import a_broker, a_message, a_subscription, acknowledge, rows

from tidings.broker.broker import Broker
from tidings.broker.sending.lag import HALVES_IN_S, LONGEST_S, Lag
from tidings.core.trace import Dropped

START = 100.0


def test_a_late_timer_is_remembered_for_a_while() -> None:
    lag = Lag()
    lag.woken(10.0, 10.04)
    assert lag.s == pytest.approx(0.04)
    lag.woken(20.0, 10.04 + HALVES_IN_S)
    assert lag.s == pytest.approx(0.02)


def test_punctual_and_early_timers_are_no_lag() -> None:
    lag = Lag()
    lag.woken(10.0, 10.0)
    lag.woken(float("inf"), 11.0)
    assert lag.s == 0.0


def test_a_process_that_was_stopped_for_an_hour_is_not_slow_for_the_next() -> None:
    lag = Lag()
    lag.woken(10.0, 3610.0)
    assert lag.s == LONGEST_S


def a_sender() -> Broker:
    """A broker whose timers were punctual until `START`."""
    unasked = {"probe_every_s": 1e6, "suspect_after_s": inf, "exhausted": "drop"}
    broker = a_broker(wishes=[a_subscription("b2")], estimates="measured", **unasked)
    while (at := broker.wake_at()) <= START:
        acknowledge(broker, broker.tick(at), at)
    return broker


def patience_ends_at(broker: Broker) -> float:
    return broker._transmitter.wake_at


def test_what_was_sent_later_waits_as_long_as_earlier_frames_are_answered() -> None:
    broker = a_sender()
    sent = [broker.publish(a_message(id=number), START) for number in range(3)]
    until = patience_ends_at(broker)
    for effects in sent[:2]:
        acknowledge(broker, effects, until - 0.001)
    assert not rows(broker.tick(until + 0.001), Dropped), "others are being answered just now"
    effects = []
    while (at := patience_ends_at(broker)) < inf:
        effects += broker.tick(at)
    assert [row.message for row in rows(effects, Dropped)] == [2], "and then no more"


def test_what_was_passed_over_by_a_later_frame_is_lost() -> None:
    broker = a_sender()
    _, second = (broker.publish(a_message(id=number), START) for number in range(2))
    until = patience_ends_at(broker)
    acknowledge(broker, second, until - 0.001)
    assert [row.message for row in rows(broker.tick(until), Dropped)] == [0]


def test_who_was_held_up_waits_longer() -> None:
    punctual, late = a_sender(), a_sender()
    for broker, late_s in ((punctual, 0.0), (late, 0.050)):
        broker.publish(a_message(id=1), START)
        broker.tick(patience_ends_at(broker) + late_s)
        broker.publish(a_message(id=2), START + 1.0)
    waits_longer_s = patience_ends_at(late) - patience_ends_at(punctual)
    assert waits_longer_s == pytest.approx(0.050)
