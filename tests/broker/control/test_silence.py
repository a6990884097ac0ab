"""Who says nothing for a second, though asked, is suspect; who is only slow is not."""

from math import inf
from typing import Any

import pytest
from support.builders import DELAY_S, TRIANGLE, Loses, Net, connected, nothing
from support.prospects import Known

from tidings.broker.broker import Broker
from tidings.broker.control.silence import FADES_IN_S, QUESTION, QUESTIONS, Silences
from tidings.broker.frames import Data, Echo, Frame, Links, Probe
from tidings.broker.sending.link import LinkEnd
from tidings.broker.settings import Settings
from tidings.core.trace import LinkChanged

PAIR = ("b1", "b2")


def watched(*links: tuple[str, str], **settings: Any) -> Net:
    """Brokers with default settings, but for those that a test is about."""
    net = connected(*links, settle_s=3.0, **{"estimates": "measured", **settings})
    net.rows.clear()
    return net


def dark(*ends: str) -> Loses:
    return lambda sender, receiver, frame: {sender, receiver} == set(ends)


def changes(net: Net, broker: str = "b1") -> list[tuple[str, bool]]:
    return [(r.neighbour, r.up) for r in net.rows_of(LinkChanged) if r.broker == broker]


def speak(net: Net, seconds: float, every_s: float = 0.05) -> None:
    for _ in range(round(seconds / every_s)):
        net.publish("b1")
        net.run(every_s)


# ---- brokers


@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.2, 0.3, 0.4])
def test_a_dark_link_is_suspect_at_both_ends_after_about_a_second(
    busy: bool, after_s: float
) -> None:
    net = watched(*TRIANGLE)
    net.subscribe("b3" if busy else "b2")
    net.run(1.0 + after_s)
    dark_at, net.loses = net.now, dark("b1", "b3")
    speak(net, 2.0)
    downs = {
        row.broker: row.recorded_at - dark_at for row in net.rows_of(LinkChanged) if not row.up
    }
    assert sorted(downs) == ["b1", "b3"]
    assert all(0.4 < took_s < 1.2 for took_s in downs.values()), downs
    assert net.brokers["b1"]._view.neighbours == ("b2",)
    assert "b3" not in net.brokers["b2"]._view.links["b1"], "the others have been told"


def test_parcels_on_a_suspect_link_leave_by_another_way_at_once() -> None:
    net = watched(*TRIANGLE, window_bytes=1)
    wish = net.subscribe("b3")
    net.run(1.0)
    speak(net, 1.0)
    net.delivered.clear()
    net.loses = dark("b1", "b3")
    waiting = [net.publish("b1")]  # it will be given up, and then wait for a way
    net.run(0.9)
    waiting += [net.publish("b1") for _ in range(5)]  # of which one is sent into the dark
    assert not net.delivered
    net.run(0.3)
    assert sorted(net.delivered) == [(wish, each) for each in waiting]
    assert [frame.envelope.path for frame in net.frames(Data, "b2", "b3")] == 6 * [("b1", "b2")]


def test_a_suspect_is_used_again_as_soon_as_anything_is_heard() -> None:
    net = watched(*PAIR_ONLY)
    net.subscribe("b2")
    net.loses = dark(*PAIR)
    net.run(30.0)  # probes have been missed as well
    assert changes(net) == [("b2", False)]
    net.loses = nothing
    net.run(0.7)
    for broker in PAIR:
        assert [up for _, up in changes(net, broker)] == [False, True]
    assert net.frames(Links, *PAIR), "it is told all that it may have missed"


PAIR_ONLY = (PAIR,)


def test_who_hears_and_is_not_answered_learns_it_by_missed_probes() -> None:
    """Of one direction nothing arrives: the other end is the one that hears nothing."""
    net = watched(*TRIANGLE)
    net.loses = lambda sender, receiver, frame: (sender, receiver) == ("b1", "b3")
    net.run(2.0)
    assert changes(net, "b3") == [("b1", False)]
    assert "b1" not in net.brokers["b1"]._view.links["b3"], "and it says so"
    net.run(30.0)
    assert changes(net, "b1") == [("b3", False)]
    net.loses = nothing
    net.run(6.0)
    assert changes(net, "b1") == [("b3", False), ("b3", True)]


def test_an_idle_link_carries_one_question_and_one_answer_in_half_a_second() -> None:
    net = watched(*PAIR_ONLY)
    net.said.clear()
    net.run(100.0)
    questions = [frame for frame in net.frames(Probe) if frame == QUESTION]
    assert 150 <= len(questions) <= 202  # a period is half a second and a round trip
    assert len(net.frames(Echo)) == len(net.frames(Probe))


def test_a_link_in_use_is_not_asked() -> None:
    net = watched(*PAIR_ONLY)
    net.subscribe("b2")
    net.run(1.0)
    net.said.clear()
    speak(net, 20.0)
    assert QUESTION not in net.frames(Probe)


def test_without_a_bound_nothing_is_asked() -> None:
    net = watched(*PAIR_ONLY, suspect_after_s=inf)
    net.run(20.0)
    assert QUESTION not in net.frames(Probe)


# ---- busy hosts


def stall(net: Net, seconds: float) -> None:
    """For so long a host reads nothing; what was sent to it lies there, and is not lost."""
    until = net.now + seconds
    while net.now < until - 1e-9:
        net.delay_s = max(DELAY_S, until - net.now)
        net.publish("b1")
        net.run(0.01)
    net.delay_s = DELAY_S


@pytest.mark.parametrize("late_s", [0.1, 0.3, 0.45])
def test_answers_that_come_late_make_no_link_suspect(late_s: float) -> None:
    net = watched(*PAIR_ONLY)
    net.subscribe("b2")
    for _ in range(50):
        net.run(0.7)
        stall(net, late_s)
    assert not net.rows_of(LinkChanged)


def test_a_host_that_becomes_ever_slower_is_waited_for() -> None:
    net = watched(*PAIR_ONLY)
    for late_s in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4):
        net.delay_s = late_s / 2
        net.run(10.0)
    assert not net.rows_of(LinkChanged)


def test_a_suspicion_that_was_wrong_is_not_repeated_again_and_again() -> None:
    net = watched(*PAIR_ONLY)
    net.subscribe("b2")
    for _ in range(20):
        net.run(2.0)
        stall(net, 1.4)
    assert len(changes(net)) in (2, 4)


def test_an_outage_teaches_no_patience() -> None:
    net = watched(*PAIR_ONLY)
    for _ in range(3):
        net.loses = dark(*PAIR)
        began_at = net.now
        net.run(20.0)
        assert net.rows_of(LinkChanged)[-1].recorded_at - began_at < 1.2
        net.loses = nothing
        net.run(2.0)


def test_few_losses_make_no_link_suspect() -> None:
    net, lost = watched(*PAIR_ONLY), [0]

    def loses_a_third(sender: str, receiver: str, frame: Frame) -> bool:
        lost[0] += 1
        return lost[0] % 3 == 0

    net.loses = loses_a_third
    net.run(100.0)
    assert not net.rows_of(LinkChanged)


# ---- the watch alone


def a_watch(timeout_s: float = 0.05) -> tuple[Silences, LinkEnd]:
    link = LinkEnd("b2", Settings(), None, Known())
    link.begin(1, 0.0)
    link.timeout_s = timeout_s
    silences = Silences("b1", 1.0)
    silences.start(link, 0.0)
    return silences, link


def suspected_at(silences: Silences, lag_s: float = 0.0) -> float:
    while True:
        at = silences.next_at()
        if True in [suspect for _, suspect in silences.look(lag_s, at)]:
            return at


def test_who_is_late_itself_waits_longer() -> None:
    assert suspected_at(a_watch()[0]) == 1.0
    assert suspected_at(a_watch()[0], lag_s=0.5) == 1.5


def test_a_slow_link_has_the_time_of_its_round_trip() -> None:
    assert suspected_at(a_watch(timeout_s=3.0)[0]) == 3.5


def test_a_broker_whose_clock_shows_another_year_is_not_late_when_it_begins() -> None:
    broker = Broker("b1", Settings(), {"b2": None})
    began_at = 1.8e9
    broker.link_up("b2", began_at)
    for _ in range(20):
        broker.tick(max(began_at, broker.wake_at()))
    assert broker._transmitter.lag.s < 1e-6


def test_who_was_stopped_asks_before_it_suspects() -> None:
    silences, link = a_watch()
    list(silences.look(0.0, 0.5))
    assert [suspect for _, suspect in silences.look(0.0, 100.0)] == [False]
    link.heard_at = 100.01
    list(silences.look(0.0, silences.next_at()))
    assert suspected_at(silences) == pytest.approx(101.01)


def test_what_was_learned_fades() -> None:
    silences, link = a_watch()
    assert suspected_at(silences) == 1.0
    link.heard_at = 1.5  # a second after it was asked
    silences.heard(link, 1.5)
    assert suspected_at(silences) == pytest.approx(1.5 + 0.5 + 1.5, abs=0.5 / QUESTIONS)
    link.heard_at = 20.0  # an outage
    silences.heard(link, 20.0)
    link.heard_at = 10.0 + 10 * FADES_IN_S
    while silences.next_at() < link.heard_at:
        list(silences.look(0.0, silences.next_at()))
    assert suspected_at(silences) - link.heard_at == pytest.approx(1.0, abs=0.5 / QUESTIONS)
