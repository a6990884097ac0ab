"""Is the link alive, and how fast? What probes find out, and what follows from it.

Other questions than the monitor's own are not asked here: see `test_silence`."""

from math import inf, isnan
from typing import Any

import pytest
from support.builders import DELAY_S, LINE, Loses, Net, connected, nothing

from tidings.broker.control.monitor import Monitor
from tidings.broker.frames import Data, Echo, Frame, Interests, Links, Probe
from tidings.broker.settings import Settings
from tidings.core.trace import Dropped, LinkChanged, Probed


def measured(*links: tuple[str, str], settle_s: float = 1.0, **settings: Any) -> Net:
    probes_only = {"estimates": "measured", "suspect_after_s": inf}
    return connected(*links, settle_s=settle_s, **{**probes_only, **settings})


def dark(*ends: str) -> Loses:
    """Nothing passes between these two brokers."""
    return lambda sender, receiver, frame: {sender, receiver} == set(ends)


# ---- the monitor alone


def test_the_first_question_is_asked_at_once_and_then_at_a_steady_pace() -> None:
    monitor = Monitor("b1", Settings(probe_every_s=5.0))
    monitor.start("b2", 10.0)
    assert monitor.next_at() == 10.0
    assert monitor.due(10.0) == [("b2", 1)]
    assert monitor.answered("b2", 1, 10.2) == pytest.approx(0.2)
    second_at = monitor.next_at()
    assert 12.5 <= second_at <= 15.0  # the first period is cut short, differently for each pair
    assert monitor.due(second_at) == [("b2", 2)]
    monitor.answered("b2", 2, second_at + 0.2)
    assert monitor.next_at() == pytest.approx(second_at + 5.0)


def test_an_unanswered_probe_is_overdue_after_its_timeout() -> None:
    monitor = Monitor("b1", Settings(probe_timeout_s=1.0, probes_missed=2))
    monitor.start("b2", 0.0)
    monitor.due(0.0)
    assert monitor.next_at() == 1.0
    assert monitor.silent(0.999) == []
    assert monitor.silent(1.0) == [("b2", False)]
    at = monitor.next_at()
    monitor.due(at)
    assert monitor.silent(at + 1.0) == [("b2", True)]


def test_silence_is_told_once_however_long_it_lasts() -> None:
    monitor = Monitor("b1", Settings(probes_missed=1))
    monitor.start("b2", 0.0)
    told = []
    for _ in range(5):
        at = monitor.next_at()
        monitor.due(at)
        told += [lost for _, lost in monitor.silent(at + 1.0)]
    assert told == [True, False, False, False, False]


def test_an_answer_to_another_question_is_no_answer() -> None:
    monitor = Monitor("b1", Settings())
    monitor.start("b2", 0.0)
    monitor.due(0.0)
    assert monitor.answered("b2", 7, 0.1) is None
    assert monitor.answered("b9", 1, 0.1) is None
    monitor.silent(1.0)
    assert monitor.answered("b2", 1, 1.1) is None  # too late


def test_with_pinned_estimates_nobody_asks() -> None:
    monitor = Monitor("b1", Settings(estimates="pinned"))
    monitor.start("b2", 0.0)
    assert monitor.next_at() == float("inf")


# ---- brokers


def test_measured_links_become_known_within_a_round_trip_and_are_used() -> None:
    net = measured(*LINE, settle_s=0.2)
    for broker in net.brokers.values():
        assert sorted(broker._view.links) == ["b1", "b2", "b3"]
    estimate = net.brokers["b1"]._view.links["b1"]["b2"]
    assert estimate.delay_s == pytest.approx(DELAY_S)
    wish = net.subscribe("b3")
    net.run(0.5)
    message = net.publish("b1")
    net.run(0.5)
    assert net.delivered == [(wish, message)]


def test_a_link_first_measured_by_an_acknowledgement_is_advertised_at_once() -> None:
    net = measured(("b1", "b2"), settle_s=0.5, loses=lambda a, b, frame: isinstance(frame, Probe))
    assert net.frames(Probe)
    assert not net.frames(Echo)
    assert "b2" in net.brokers["b1"]._view.links["b1"]


def test_a_probe_is_answered_with_its_number() -> None:
    net = measured(("b1", "b2"))
    asked = [frame.serial for frame in net.frames(Probe, "b1", "b2")]
    answered = [frame.serial for frame in net.frames(Echo, "b2", "b1")]
    assert asked == answered == [1]


def test_missed_probes_take_the_link_down_and_the_first_answer_brings_it_up() -> None:
    net = measured(("b1", "b2"), probe_every_s=1.0, probe_timeout_s=0.5, probes_missed=3)
    net.rows.clear()
    net.loses = dark("b1", "b2")
    dark_at = net.now
    net.run(10.0)
    downs = [row for row in net.rows_of(LinkChanged) if not row.up]
    assert sorted(row.broker for row in downs) == ["b1", "b2"]
    assert all(2.0 < row.recorded_at - dark_at <= 3.6 for row in downs)
    assert net.brokers["b1"]._view.neighbours == ()
    net.loses = nothing
    light_at = net.now
    net.run(2.0)
    ups = [row for row in net.rows_of(LinkChanged) if row.up]
    assert sorted(row.broker for row in ups) == ["b1", "b2"]
    assert all(row.recorded_at - light_at <= 1.1 for row in ups)


def test_what_changed_while_the_monitor_thought_a_link_down_is_told_when_it_is_up() -> None:
    net = measured(*LINE, probe_every_s=1.0, probe_timeout_s=0.5, advertise_every_s=1e6)
    net.loses = dark("b1", "b2")
    net.run(20.0)
    wish = net.subscribe("b3")
    net.run(20.0)
    assert net.takers("b1") == {}
    net.loses = nothing
    net.run(3.0)
    assert net.takers("b1") == net.of(wish)
    assert net.frames(Interests, "b2", "b1")
    message = net.publish("b1")
    net.run(1.0)
    assert net.delivered == [(wish, message)]


def test_a_link_that_the_world_takes_down_after_the_monitor_did_comes_up_again() -> None:
    net = measured(("b1", "b2"), probe_every_s=1.0, probe_timeout_s=0.5)
    wish = net.subscribe("b2")
    net.run(1.0)
    net.loses = dark("b1", "b2")
    net.run(10.0)
    net.disconnect("b1", "b2")
    net.loses = nothing
    net.run(10.0)
    assert net.brokers["b1"]._view.neighbours == ()
    net.connect("b1", "b2")
    net.run(1.0)
    message = net.publish("b1")
    net.run(1.0)
    assert net.delivered == [(wish, message)]
    assert [row.up for row in net.rows_of(LinkChanged) if row.broker == "b1"] == [
        True,
        False,
        True,
    ]


def test_the_loss_of_probes_is_measured() -> None:
    net = measured(("b1", "b2"), probe_every_s=0.5, probe_timeout_s=0.2, probes_missed=10**6)
    probes = []

    def loses_every_fourth_probe(sender: str, receiver: str, frame: Frame) -> bool:
        if isinstance(frame, Probe) and sender == "b1":
            probes.append(frame)
            return len(probes) % 4 == 0
        return False

    net.loses = loses_every_fourth_probe
    net.run(200.0)
    estimate = net.brokers["b1"]._links["b2"].estimate
    assert estimate is not None
    assert estimate.delivery_ratio == pytest.approx(0.75, abs=0.08)


def test_a_changed_delay_is_advertised_and_an_unchanged_one_is_not() -> None:
    net = measured(*LINE, probe_every_s=1.0, advertise_every_s=2.0)
    net.run(10.0)
    before = len(net.frames(Links))
    net.run(30.0)
    assert len(net.frames(Links)) == before
    net.delay_s = 0.050
    net.run(30.0)
    assert len(net.frames(Links)) > before
    assert net.brokers["b3"]._view.links["b1"]["b2"].delay_s == pytest.approx(0.050, rel=0.15)


def test_at_level_hops_probes_leave_rows_and_silence_is_not_a_number() -> None:
    net = measured(("b1", "b2"), trace="hops")
    assert [row.round_trip_s for row in net.rows_of(Probed) if row.broker == "b1"] == [
        pytest.approx(2 * DELAY_S)
    ]
    net.loses = dark("b1", "b2")
    net.run(7.0)
    assert any(isnan(row.round_trip_s) for row in net.rows_of(Probed))


def test_parcels_that_were_sent_into_the_dark_are_given_up_not_forgotten() -> None:
    probing = {"probe_every_s": 1.0, "probe_timeout_s": 0.5}
    net = measured(("b1", "b2"), window_bytes=1, exhausted="drop", **probing)
    net.subscribe("b2")
    net.run(1.0)
    net.loses = dark("b1", "b2")
    messages = [net.publish("b1") for _ in range(3)]
    net.run(20.0)
    assert not net.delivered
    assert [row.message for row in net.rows_of(Dropped)] == messages
    assert len(net.frames(Data)) == 3
