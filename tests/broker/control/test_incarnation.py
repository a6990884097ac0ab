"""A broker that starts with a lower number than it had before is heard again, and soon."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

import pytest
from support.builders import (
    DELAY_S,
    LINE,
    START,
    TRIANGLE,
    Net,
    a_broker,
    a_data,
    a_message,
    a_subscription,
    connected,
    deliveries,
    sends,
    some_interests,
)
from support.values import replace

from tidings.broker.broker import Broker
from tidings.broker.codec import Decoder, encode
from tidings.broker.control import interest_parts
from tidings.broker.control.incarnation import FIRST_PAUSE_S, LONGEST_PAUSE_S, OwnIncarnation
from tidings.broker.effects import Effect, Send, Warn
from tidings.broker.frames import Interests, Links
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message_ids import MessageIds
from tidings.core.ranges import MOST_WHOLE
from tidings.routing.dcrd.router import Dcrd

LOWER_OR_EQUAL = pytest.mark.parametrize("incarnation", [0, 3, 8, 9])
BEFORE = 9  # the incarnation of the broker that will be restarted


def an_overlay(*links: tuple[str, str], victim: str = "b3", **settings: Any) -> Net:
    """Settled brokers, of which the victim lives under incarnation `BEFORE`."""
    net = connected(*links, **settings)
    restarted(net, victim, BEFORE)
    net.run(1.0)
    return net


def restarted(net: Net, name: str, incarnation: int, away_s: float = 0.0) -> None:
    """The broker dies, its neighbours notice, and it comes back with this incarnation."""
    old = net.brokers.pop(name)
    near = list(old._links)
    for neighbour in near:
        net.tell(neighbour, "link_down", name)
    net.run(away_s)
    start = LinkEstimate(DELAY_S) if old.settings.estimates == "pinned" else None
    net.add(Broker(name, old.settings, dict.fromkeys(near, start), incarnation))
    for neighbour in near:
        net.connect(name, neighbour)


def known_incarnations(net: Net, origin: str) -> set[int]:
    """By which numbers the broker is known, by its interests and its links, to all."""
    exchanges = [broker._exchange for broker in net.brokers.values()]
    links = {e.link_state._newest[origin].frame.incarnation for e in exchanges}
    return links | {e.interests._origins[origin].incarnation for e in exchanges}


def warnings(effects: list[Effect]) -> list[str]:
    return [effect.text for effect in effects if isinstance(effect, Warn)]


# ---- it is heard again


@LOWER_OR_EQUAL
def test_the_subscriptions_of_a_broker_with_a_lower_incarnation_are_heard(incarnation: int) -> None:
    net = an_overlay(*LINE)
    net.subscribe("b3", "before")
    net.run(1.0)
    restarted(net, "b3", incarnation)
    after = net.subscribe("b3", "after", deadline_s=5.0)
    net.run(1.0)
    assert all(net.takers(name) == net.of(after) for name in net.brokers)
    message = net.publish("b1")
    net.run(1.0)
    assert net.delivered == [(after, message)]


@LOWER_OR_EQUAL
def test_what_it_subscribes_before_its_links_are_up_replaces_what_was_known(
    incarnation: int,
) -> None:
    """Its first version is then told, and heard of, under numbers that others know already."""
    net = an_overlay(*LINE)
    net.subscribe("b3", "before")
    net.run(1.0)
    old = net.brokers.pop("b3")
    net.tell("b2", "link_down", "b3")
    net.add(Broker("b3", old.settings, {"b2": LinkEstimate(DELAY_S)}, incarnation))
    after = net.subscribe("b3", "after", deadline_s=5.0)
    net.run(1.0)
    net.connect("b2", "b3")
    net.run(1.0)
    assert all(net.takers(name) == net.of(after) for name in net.brokers)
    later = net.subscribe("b3", "later")
    net.run(1.0)
    assert all(net.takers(name) == net.of(after, later) for name in net.brokers)


@LOWER_OR_EQUAL
def test_a_broker_that_comes_back_without_subscriptions_is_owed_nothing(incarnation: int) -> None:
    net = an_overlay(*LINE)
    net.subscribe("b3")
    net.run(1.0)
    restarted(net, "b3", incarnation)
    net.run(1.0)
    assert all(net.takers(name) == {} for name in net.brokers)


@LOWER_OR_EQUAL
def test_its_links_are_heard(incarnation: int) -> None:
    net = an_overlay(*TRIANGLE)
    restarted(net, "b3", incarnation)
    net.run(1.0)
    net.disconnect("b3", "b1")  # a change: what it had said before is true no more
    net.run(1.0)
    for broker in net.brokers.values():
        assert sorted(broker._exchange.link_state._used["b3"].links) == ["b2"]


def test_it_outbids_once_and_then_the_overlay_is_quiet() -> None:
    net = an_overlay(*TRIANGLE)
    net.subscribe("b3")
    net.run(1.0)
    restarted(net, "b3", 2)
    net.run(1.0)
    assert known_incarnations(net, "b3") == {BEFORE + 1}
    before = len(net.said)
    net.run(30.0)
    assert net.said[before:] == []


def test_it_outbids_again_if_a_broker_that_was_cut_off_knows_a_higher_number() -> None:
    net = an_overlay(*LINE)
    net.subscribe("b3")
    net.run(1.0)
    net.disconnect("b1", "b2")
    restarted(net, "b3", 4)
    after = net.subscribe("b3", "after", deadline_s=5.0)
    net.run(1.0)
    b1 = net.brokers["b1"]
    b1._exchange.interests._origins["b3"].incarnation = 70
    net.connect("b1", "b2")
    net.run(2.0)
    assert net.takers("b1") == net.of(after)
    assert max(known_incarnations(net, "b3")) == 71


def test_a_link_that_flaps_makes_nobody_outbid_anybody() -> None:
    net = connected(*TRIANGLE)
    net.subscribe("b3", "c1")
    net.run(1.0)
    for _ in range(3):
        net.disconnect("b1", "b3")
        net.subscribe("b3", "c2")  # pending when the link is up, and told at once
        net.tell("b3", "unsubscribe", a_subscription("b3", "c1").id)
        net.connect("b1", "b3")
        net.run(1.0)
        net.subscribe("b3", "c1")
    net.run(1.0)
    assert known_incarnations(net, "b3") == {1}


# ---- where nothing stale is told by itself


def test_a_report_that_is_too_old_to_be_told_is_outbid_all_the_same() -> None:
    """After one lifetime a report is told to nobody, but for another it is remembered."""
    settings = {"estimates": "measured", "report_lifetime_s": 30.0}
    net = an_overlay(*LINE, **settings)
    restarted(net, "b3", 2, away_s=40.0)
    net.run(2.0)
    assert {tuple(b._view.links.get("b3", ())) for b in net.brokers.values()} == {("b2",)}


def test_gossip_is_believed_though_its_numbers_are_lower_than_before() -> None:
    """A broker that has never subscribed, and whose reports are forgotten, is told nothing: it has
    nothing to outbid."""
    settings = {"estimates": "measured", "report_lifetime_s": 30.0, "strategy": "dcrd"}
    net = an_overlay(*LINE, victim="b2", **settings)
    net.subscribe("b3")
    net.run(2.0)
    before = gossip_heard(net.brokers["b1"], "b2", about="b3")
    restarted(net, "b2", 2, away_s=100.0)
    net.run(5.0)
    newest = net.brokers["b1"]._exchange.link_state._newest["b2"]
    assert newest.frame.incarnation == 2
    assert gossip_heard(net.brokers["b1"], "b2", about="b3") != before


def gossip_heard(broker: Broker, neighbour: str, about: str) -> tuple[int, float, float]:
    router = broker._strategies.get("dcrd")
    assert isinstance(router, Dcrd)
    return router._lists._known[about, "", inf].heard[neighbour]


def test_an_update_that_was_cut_off_does_not_keep_out_one_with_lower_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interest_parts, "PART_BYTES", 500)
    wishes = [a_subscription("b2", topic=f"t/{n:02}") for n in range(20)]
    before = interest_parts.split(some_interests(*wishes, incarnation=9))
    after = interest_parts.split(some_interests(*wishes, incarnation=2))
    broker = a_broker("b1", ["b2"])
    tell_parts(broker, before[:-1], START)
    broker.link_down("b2", START + 1)
    broker.link_up("b2", START + 2)
    tell_parts(broker, after, START + 3)
    assert broker.subscriptions == len(wishes)


def tell_parts(broker: Broker, parts: list[Interests], now: float) -> None:
    for number, part in enumerate(parts):
        broker.receive("b2", replace(part, transmission=number), now)


# ---- numbers of transmissions and messages


def test_a_link_that_comes_up_again_swallows_no_frame_for_its_old_number() -> None:
    broker = a_broker("b2", ["b1"], [a_subscription("b2")])
    broker.subscribe(a_subscription("b2"), START)
    first, second = a_data(7, a_message(), "b2"), a_data(7, a_message(), "b2")
    assert deliveries(broker.receive("b1", first, START))
    assert not deliveries(broker.receive("b1", second, START + 0.1))  # a repeat, it seems
    broker.link_down("b1", START + 0.2)
    broker.link_up("b1", START + 0.3)
    assert deliveries(broker.receive("b1", second, START + 0.4))


@LOWER_OR_EQUAL
def test_all_messages_of_a_later_life_are_delivered(incarnation: int) -> None:
    net = an_overlay(*LINE)
    wish = net.subscribe("b1")
    net.run(1.0)
    sent = [net.publish("b3") for _ in range(5)]
    net.run(1.0)
    for _ in range(2):
        restarted(net, "b3", incarnation)
        net.run(1.0)
        sent += [net.publish("b3") for _ in range(5)]
        net.run(1.0)
    assert net.delivered == [(wish, message) for message in sent]
    assert len(set(sent)) == len(sent)


def test_ids_of_lives_with_one_incarnation_differ_if_their_marks_do() -> None:
    taken = [MessageIds("b1", 1, life).take() for life in ("", "x", "y")]
    assert len(set(taken)) == 3


# ---- numbers that cannot be


@pytest.mark.parametrize("heard", [10, 2**31, 2**40, MOST_WHOLE - 1])
@pytest.mark.parametrize("kind", [Interests, Links])
def test_a_huge_number_is_outbid_and_every_frame_can_be_read(
    heard: int, kind: type[Interests] | type[Links]
) -> None:
    broker = a_broker("b1", ["b2"])
    broker.subscribe(a_subscription("b1"), START)
    effects = broker.receive("b2", former(kind, heard), START)
    assert len(warnings(effects)) == 1
    told = said(broker.tick(START + 1.0))
    assert {frame.incarnation for frame in told} == {heard + 1}
    assert {type(frame) for frame in told} == {Interests, Links}
    assert [Decoder().feed(encode(frame)) for frame in told] == [[frame] for frame in told]


@pytest.mark.parametrize("kind", [Interests, Links])
def test_what_no_number_can_outbid_is_told_to_a_person_and_changes_nothing(
    kind: type[Interests] | type[Links],
) -> None:
    broker = a_broker("b1", ["b2"])
    [warning] = warnings(broker.receive("b2", former(kind, MOST_WHOLE), START))
    assert "cannot be outbid" in warning
    assert said(broker.tick(START + 1.0)) == []
    broker.subscribe(a_subscription("b1"), START + 2.0)
    assert {frame.incarnation for frame in said(broker.tick(START + 3.0))} == {1}


@pytest.mark.parametrize("incarnation", [1, 2**31 - 1, 2**31, 2**40, MOST_WHOLE])
def test_a_broker_of_any_incarnation_sends_frames_that_can_be_read(incarnation: int) -> None:
    broker = Broker("b1", a_broker().settings, {"b2": LinkEstimate(DELAY_S)}, incarnation)
    effects = broker.link_up("b2", 0.0) + broker.tick(1.0)
    frames = [effect.frame for effect in effects if isinstance(effect, Send)]
    assert frames
    assert [Decoder().feed(encode(frame)) for frame in frames] == [[frame] for frame in frames]


def test_two_brokers_of_one_name_outbid_each_other_ever_more_slowly() -> None:
    number = OwnIncarnation(1, MessageIds("b1", 1))
    heard, now, risen_at = 1, 0.0, []
    while now < 1_000.0:
        number.outdone(heard, now)
        now = max(now, number.rises_at)
        heard = number.rise(now) + 1  # the other one answers at once
        risen_at.append(now)
    pauses = [later - earlier for earlier, later in pairwise(risen_at)]
    assert pauses[0] == pytest.approx(FIRST_PAUSE_S)
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE_S)
    assert all(later > 0.99 * earlier for earlier, later in pairwise(pauses))


def former(kind: type[Interests] | type[Links], incarnation: int) -> Interests | Links:
    if kind is Interests:
        return some_interests(a_subscription("b1", "former"), incarnation=incarnation)
    return Links(77, "b1", incarnation, 5, (("b2", LinkEstimate(0.5)),))


def said(effects: list[Effect]) -> list[Any]:
    """The frames about its own links and clients."""
    return [frame for _, frame in sends(effects, (Interests, Links))]
