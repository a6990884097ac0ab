"""Interests that are known only nearby: through real frames, after any history."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import Net, takers
from support.steps import Ends, History, Step

from tidings.broker.broker import Broker
from tidings.broker.control.linkage import Whereabouts
from tidings.broker.frames import Data, Interests
from tidings.broker.settings import Settings
from tidings.core.errors import ConfigError
from tidings.core.trace import Dropped, Published

LIFETIME_S = 2.0
NAMES = ("b1", "b2", "b3", "b4", "b5", "b6")


def overlay(hops: int, *links: Ends) -> Net:
    net = Net()
    wanted = {"report_lifetime_s": LIFETIME_S, "probe_every_s": 0.2, "probe_timeout_s": 0.1}
    chosen = Settings(strategy="flooding", interests=hops, advertise_every_s=0.2, **wanted)
    for name in NAMES:
        net.add(made(name, chosen.checked("test"), 1))
    for ends in links:
        net.connect(*ends)
    return net


def made(name: str, settings: Settings, incarnation: int) -> Broker:
    return Broker(name, settings, {}, incarnation, whereabouts=Whereabouts())


def within(hops: int, links: set[Ends], start: str) -> set[str]:
    """By brute force: all that so many steps lead to."""
    reached = {start}
    for _ in range(hops):
        reached |= {b for ends in links for a, b in (ends, ends[::-1]) if a in reached}
    return reached


CHAIN = tuple(pairwise(NAMES))


@pytest.mark.parametrize("hops", [0, 1, 2, 4])
def test_what_is_asked_for_is_known_so_many_hops_away(hops: int) -> None:
    net = overlay(hops, *CHAIN)
    net.subscribe("b1")
    net.run(1.0)
    knowing = {name for name in NAMES if takers(net.brokers[name])}
    assert knowing == set(NAMES[: hops + 1])
    told = {a for _, a, b, frame in net.said if isinstance(frame, Interests) and frame.wishes}
    assert told == set(NAMES[:hops])


KINDS = ["link"] * 4 + ["join"] * 2 + ["cut", "wish", "unwish", "crash", "leave"]
STEPS = st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES), st.sampled_from(NAMES))


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, max_size=30))
def test_after_any_changes_a_broker_knows_just_what_is_asked_for_within_the_horizon(
    hops: int, steps: list[Step]
) -> None:
    net = overlay(hops)
    chosen = net.brokers["b1"].settings
    history = History(net, 0.03, lambda name, incarnation: made(name, chosen, incarnation))
    history.go_through(steps)
    net.run(4 * LIFETIME_S)
    for name in net.brokers:
        near = within(hops, history.links, name)
        assert takers(net.brokers[name]).keys() == near & history.wishes.keys()
        assert set(net.brokers[name]._interests.origins()) <= near


@pytest.mark.parametrize("hops", [0, 2])
def test_an_open_message_is_delivered_wherever_it_is_wanted_and_once(hops: int) -> None:
    net = overlay(hops, *CHAIN, ("b1", "b6"), ("b2", "b5"))
    wishes = [net.subscribe(name) for name in ("b1", "b3", "b6")]
    net.run(1.0)
    message = net.publish("b1")
    net.run(1.0)
    assert sorted(net.delivered) == sorted((wish, message) for wish in wishes)
    assert net.rows_of(Dropped) == []
    [row] = net.rows_of(Published)
    assert row.strategy == "flooding"
    sent = [frame for _, _, _, frame in net.said if isinstance(frame, Data)]
    assert all(len(frame.envelope.destinations) == 1 for frame in sent), "nobody is named"


def test_an_open_message_waits_at_a_broker_that_is_alone() -> None:
    net = overlay(1)
    wish = net.subscribe("b2")
    net.run(1.0)
    message = net.publish("b1")
    net.run(2.0)
    assert net.delivered == []
    net.connect("b1", "b2")
    net.run(3.0)
    assert net.delivered == [(wish, message)]


def test_late_open_messages_are_dropped_where_they_are_late() -> None:
    net = overlay(0, *CHAIN)
    net.subscribe("b2")
    net.subscribe("b6")
    net.run(1.0)
    message = net.publish("b1", deadline_s=0.025, late="drop")
    net.run(1.0)
    assert [who for who, _ in net.delivered] == ["b2/c:t"]
    reasons = {row.reason for row in net.rows_of(Dropped) if row.message == message}
    assert reasons == {"expired"}


def test_a_strategy_that_must_know_who_wants_a_message_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"broker\.strategy is 'dcrd'.*flooding"):
        Settings(strategy="dcrd", interests=2).checked("b.toml")
    with pytest.raises(ConfigError, match=r"broker\.interests"):
        Settings(strategy="flooding", interests=-1).checked("b.toml")


def test_a_message_whose_strategy_must_know_who_wants_it_takes_the_brokers_own() -> None:
    net = overlay(1, *CHAIN)
    net.subscribe("b6")
    net.run(1.0)
    net.publish("b1", strategy="dcrd")
    net.run(1.0)
    assert len(net.delivered) == 1
    assert [row.strategy for row in net.rows_of(Published)] == ["flooding"]
