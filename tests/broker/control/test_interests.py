"""Who subscribes where: how every broker learns it, whatever is lost on the way."""

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
    a_message,
    a_subscription,
    connected,
    sends,
    some_interests,
    wishes_of,
)

from tidings.broker.broker import Broker
from tidings.broker.codec import encode
from tidings.broker.control.interests import InterestTable, News
from tidings.broker.frames import Ack, Data, Frame, Interests, Pull
from tidings.core.contract import BEST_EFFORT, Contract, TopicPolicy, Wish
from tidings.core.errors import FilterError, PredicateError
from tidings.core.links.estimates import LinkEstimate
from tidings.core.trace import Subscribed

LONG_LINE = (("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"))


def restarted(net: Net, name: str, incarnation: int = 2) -> None:
    """The broker loses all it knew; its neighbours notice, and it comes back."""
    old = net.brokers[name]
    near = list(old._links)
    for neighbour in near:
        net.tell(neighbour, "link_down", name)
    start = dict.fromkeys(near, LinkEstimate(DELAY_S))
    net.add(Broker(name, old.settings, start, incarnation))
    for neighbour in near:
        net.connect(name, neighbour)


# ---- the overlay learns


def test_a_subscription_becomes_known_over_many_hops_and_messages_come_back_over_them() -> None:
    net = connected(*LONG_LINE)
    wish = net.subscribe("b5")
    net.run(1.0)
    assert all(net.takers(name) == net.of(wish) for name in net.brokers)
    message = net.publish("b1")
    net.run(1.0)
    assert net.delivered == [(wish, message)]


def test_the_change_travels_after_a_short_wait_for_company_in_one_frame() -> None:
    net = connected(*LINE)
    before = len(net.frames(Interests, "b1", "b2"))
    for client in ("c1", "c2", "c3"):
        net.subscribe("b1", client)
    net.run(1.0)
    told = net.frames(Interests, "b1", "b2")[before:]
    assert [[wish.number for wish in frame.wishes] for frame in told] == [[3]]


def test_an_ended_subscription_is_forgotten_everywhere() -> None:
    net = connected(*LINE)
    wish = net.subscribe("b3")
    net.run(1.0)
    net.tell("b3", "unsubscribe", wish)
    net.run(1.0)
    assert all(net.takers(name) == {} for name in net.brokers)
    assert [row.active for row in net.rows_of(Subscribed)] == [True, False]


def test_the_end_of_an_unknown_subscription_changes_nothing() -> None:
    broker = a_broker()
    assert broker.unsubscribe("b1/nobody:t", START) == []


def test_a_renewed_subscription_replaces_the_old_one_everywhere() -> None:
    net = connected(*LINE)
    net.subscribe("b3", deadline_s=1.0)
    net.run(1.0)
    net.subscribe("b3", deadline_s=5.0)
    net.run(1.0)
    net.publish("b1")
    [(_, data)] = [(to, f) for _, _, to, f in net.said if isinstance(f, Data)]
    assert [group.deadline_s for group in data.envelope.destinations[0].groups] == [5.0]


def test_a_subscription_renewed_and_ended_in_one_breath_is_ended_everywhere() -> None:
    net = connected(*LINE)
    wish = net.subscribe("b3")
    net.run(1.0)
    net.subscribe("b3", deadline_s=5.0)
    net.tell("b3", "unsubscribe", wish)
    net.run(1.0)
    assert net.takers("b1") == {}


def test_a_subscription_ended_and_renewed_in_one_breath_lives_everywhere() -> None:
    net = connected(*LINE)
    wish = net.subscribe("b3")
    net.run(1.0)
    net.tell("b3", "unsubscribe", wish)
    net.subscribe("b3")
    net.run(1.0)
    assert net.takers("b1") == net.of(wish)


@pytest.mark.parametrize(
    ("change", "fault"), [({"where": "x <"}, PredicateError), ({"topic": "a/#/b"}, FilterError)]
)
def test_a_malformed_wish_is_refused_and_the_old_one_stays(
    change: dict[str, str], fault: type[Exception]
) -> None:
    broker = a_broker()
    wish = a_subscription("b1")
    broker.subscribe(wish, 0.5)
    fields = {"topic": wish.topic, "where": "", **change}
    with pytest.raises(fault):
        broker.subscribe(type(wish)(wish.id, "b1", **fields), 0.6)
    wanted = broker._interests.wanted(a_message())
    assert wanted.local_ids == (wish.id,)


# ---- loss


def test_lost_control_frames_are_repeated_until_acknowledged() -> None:
    net = connected(*LINE)
    drops = {"left": 5}

    def loses(sender: str, receiver: str, frame: Frame) -> bool:
        if isinstance(frame, Interests) and drops["left"]:
            drops["left"] -= 1
            return True
        return False

    net.loses = loses
    wish = net.subscribe("b3")
    net.run(5.0)
    assert drops["left"] == 0
    assert net.takers("b1") == net.of(wish)
    to_b2 = net.frames(Interests, "b3", "b2")
    assert len({f.transmission for f in to_b2 if f.wishes}) == 1


def test_repeats_of_control_frames_come_at_growing_distances_without_end() -> None:
    net = connected(("b1", "b2"))
    net.loses = lambda sender, receiver, frame: True
    net.subscribe("b1")
    net.run(20.0)
    at = [at for at, _, _, frame in net.said if isinstance(frame, Interests) and frame.wishes]
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert gaps == pytest.approx([0.03 * 2 ** min(i, 6) for i in range(len(gaps))])
    assert net.now - at[-1] <= 0.03 * 64


def test_a_control_frame_repeated_for_want_of_an_answer_is_applied_once() -> None:
    broker = a_broker("b2", ["b1", "b3"])
    update = some_interests(a_subscription("b1"), version=1)
    first = broker.receive("b1", update, START)
    second = broker.receive("b1", update, START + 0.1)
    assert [to for to, _ in sends(first, Interests)] == ["b3"]
    assert not sends(second, Interests)
    assert [frame for _, frame in sends(second, Ack)] == [Ack((update.transmission,))]


def test_a_gap_is_healed_by_asking_for_the_whole() -> None:
    net = connected(*LINE)
    first = net.subscribe("b3", "c1")
    net.run(1.0)
    b1 = net.brokers["b1"]
    skipped = a_subscription("b3", "c9")
    effects = b1.receive("b2", some_interests(skipped, base=7, version=8), net.now)
    assert [frame.origin for _, frame in sends(effects, Pull)] == ["b3"]
    assert net.takers("b1") == net.of(first)  # nothing is applied across a gap
    net.tell("b2", "receive", "b1", sends(effects, Pull)[0][1])
    [whole] = [f for f in net.frames(Interests, "b2", "b1")[-1:] if f.base == 0]
    assert whole.wishes == wishes_of(net.wishes[first])


def test_changes_that_overtake_each_other_end_in_the_same_table() -> None:
    net = connected(*LINE)
    dropped = []

    def loses_the_first_update(sender: str, receiver: str, frame: Frame) -> bool:
        lost = isinstance(frame, Interests) and frame.version == 1 and len(dropped) < 3
        dropped.extend([frame] if lost and (sender, receiver) == ("b3", "b2") else [])
        return lost and (sender, receiver) == ("b3", "b2")

    net.loses = loses_the_first_update
    first = net.subscribe("b3", "c1")
    net.run(0.012)
    second = net.subscribe("b3", "c2")
    net.run(5.0)
    assert len(dropped) == 3
    assert net.frames(Pull, "b2", "b3")
    assert net.takers("b1") == net.of(first, second)


# ---- joining, restarting


def test_a_late_joiner_is_told_everything_when_its_link_comes_up() -> None:
    net = connected(*LINE, later=(("b2", "b4"),))
    wish = net.subscribe("b3")
    net.run(1.0)
    assert net.takers("b4") == {}
    net.connect("b2", "b4")
    net.run(1.0)
    assert net.takers("b4") == net.of(wish)
    message = net.publish("b4")
    net.run(1.0)
    assert net.delivered == [(wish, message)]


def test_what_changed_while_a_link_was_down_is_told_when_it_is_up_again() -> None:
    net = connected(*LINE)
    old = net.subscribe("b3", "old")
    net.run(1.0)
    net.disconnect("b1", "b2")
    net.tell("b3", "unsubscribe", old)
    new = net.subscribe("b3", "new", deadline_s=5.0)
    net.run(1.0)
    assert net.takers("b1") == net.of(old)
    net.connect("b1", "b2")
    net.run(1.0)
    assert net.takers("b1") == net.of(new)


def test_a_higher_incarnation_replaces_all_that_the_old_one_said() -> None:
    net = connected(*LINE)
    net.subscribe("b3", "before")
    net.subscribe("b3", "before-too")
    net.run(1.0)
    restarted(net, "b3")
    after = net.subscribe("b3", "after", deadline_s=5.0)
    net.run(1.0)
    assert net.takers("b1") == net.of(after)
    assert net.takers("b2") == net.of(after)


def test_a_broker_that_comes_back_without_clients_is_owed_nothing_any_more() -> None:
    net = connected(*LINE)
    net.subscribe("b3")
    net.run(1.0)
    restarted(net, "b3")
    net.run(1.0)
    assert net.takers("b2") == {}
    assert net.takers("b1") == {}


def test_a_broker_that_restarts_learns_the_others_interests_again() -> None:
    net = connected(*TRIANGLE)
    wish = net.subscribe("b3")
    net.run(1.0)
    restarted(net, "b1")
    net.run(1.0)
    assert net.takers("b1") == net.of(wish)


def test_what_an_old_incarnation_said_is_ignored_after_the_new_one_spoke() -> None:
    table = InterestTable("b1", 1)
    new, old = a_subscription("b3", "new", deadline_s=5.0), a_subscription("b3", "old")
    assert table.apply(some_interests(new, incarnation=2)) is News.NEW
    assert table.apply(some_interests(old, incarnation=1, version=9)) is News.OLD
    assert counts(table) == {5.0: 1}


def test_what_others_say_of_this_brokers_own_clients_is_ignored() -> None:
    table = InterestTable("b1", 1)
    assert table.apply(some_interests(a_subscription("b1"), incarnation=9)) is News.OLD
    assert len(table) == 0


# ---- the table


def counts(table: InterestTable) -> dict[float, int]:
    """How many want a message at the one other broker that is known, by deadline."""
    [owed] = table.wanted(a_message()).destinations(BEST_EFFORT)
    return {group.deadline_s: group.count for group in owed.groups}


def test_the_whole_tells_what_was_announced_and_the_pending_rest_follows_as_a_change() -> None:
    mine, theirs = InterestTable("b1", 1), InterestTable("b2", 1)
    announced = a_subscription("b1", "c1")
    pending = a_subscription("b1", "c2", deadline_s=5.0)
    mine.subscribe(announced)
    mine.changes()
    mine.subscribe(pending)
    whole = mine.whole("b1")
    assert whole is not None
    assert (whole.base, whole.version, whole.wishes) == (0, 1, wishes_of(announced))
    assert theirs.apply(whole) is News.NEW
    change = mine.changes()
    assert change is not None
    assert (change.base, change.version) == (1, 2)
    assert theirs.apply(change) is News.NEW
    assert counts(theirs) == {inf: 1, 5.0: 1}


def test_a_pending_end_follows_the_whole_as_a_change() -> None:
    mine, theirs = InterestTable("b1", 1), InterestTable("b2", 1)
    kept, ended = a_subscription("b1", "kept", deadline_s=5.0), a_subscription("b1", "ended")
    mine.subscribe(kept)
    mine.subscribe(ended)
    mine.changes()
    mine.unsubscribe(ended.id)
    for update, known in ((mine.whole("b1"), {5.0: 1, inf: 1}), (mine.changes(), {5.0: 1})):
        assert update is not None
        assert theirs.apply(update) is News.NEW
        assert counts(theirs) == known


def test_clients_that_ask_alike_are_told_by_their_number_and_a_change_by_the_new_one() -> None:
    table = InterestTable("b1", 1)
    for client in ("c1", "c2", "c3"):
        table.subscribe(a_subscription("b1", client))
    first = table.changes()
    assert first is not None
    assert first.wishes == (Wish("t", number=3),)
    table.unsubscribe(a_subscription("b1", "c2").id)
    second = table.changes()
    assert second is not None
    assert second.wishes == (Wish("t", number=2),)
    table.unsubscribe(a_subscription("b1", "c1").id)
    table.subscribe(a_subscription("b1", "c4"))
    assert table.changes() is None  # one came and one went: nobody else need know
    for client in ("c3", "c4"):
        table.unsubscribe(a_subscription("b1", client).id)
    last = table.changes()
    assert last is not None
    assert last.wishes == (Wish("t", number=0),)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, {"a/#": 3}),
        ({"scheduling": "urgency"}, {"a/#": 3}),
        ({"scheduling": "eb"}, {"a/#": 1, "a/b": 2}),
        ({"policies": (TopicPolicy("b/#", Contract(scheduling="rl")),)}, {"a/#": 1, "a/b": 2}),
    ],
)
def test_what_is_covered_is_told_only_where_a_policy_asks_how_many_want_a_message(
    settings: dict[str, Any], told: dict[str, int]
) -> None:
    net = connected(*LINE, **settings)
    for client, topic in (("c1", "a/b"), ("c2", "a/#"), ("c3", "a/b")):
        net.subscribe("b3", client, topic)
    net.run(1.0)
    whole = net.brokers["b1"]._interests.whole("b3")
    assert whole is not None
    assert {wish.topic: wish.number for wish in whole.wishes} == told
    message = net.publish("b1", "a/b")
    net.run(1.0)
    takers = ["b3/c1:a/b", "b3/c2:a/#", "b3/c3:a/b"]
    assert net.delivered == [(taker, message) for taker in takers]
    for client, topic in (("c2", "a/#"), ("c1", "a/b")):
        net.tell("b3", "unsubscribe", f"b3/{client}:{topic}")
    net.run(1.0)
    assert net.takers("b1", "a/b") == {"b3": {inf: 1}}
    assert net.takers("b1", "a/c") == {}


def test_an_overlay_hears_nobody_s_name() -> None:
    net = connected(*LINE)
    net.subscribe("b3", "somebody")
    net.run(1.0)
    told = net.frames(Interests)
    assert any(frame.wishes for frame in told)
    assert not any(b"somebody" in encode(frame) for frame in told)


def test_without_changes_there_is_nothing_to_announce() -> None:
    table = InterestTable("b1", 1)
    assert table.changes() is None
    table.subscribe(a_subscription("b1"))
    assert table.changes() is not None
    assert table.changes() is None


def test_of_a_broker_never_heard_of_there_is_no_whole() -> None:
    assert InterestTable("b1", 1).whole("b9") is None


def test_destinations_are_brokers_with_their_subscriptions_grouped_by_deadline() -> None:
    table = InterestTable("b1", 1)
    wishes = [
        a_subscription("b2", "c1", deadline_s=1.0),
        a_subscription("b2", "c2", deadline_s=1.0, price=2.0),
        a_subscription("b2", "c3", deadline_s=5.0),
    ]
    table.apply(some_interests(*wishes))
    table.apply(some_interests(a_subscription("b3")))
    owed = table.wanted(a_message()).destinations(BEST_EFFORT)
    assert [d.broker for d in owed] == ["b2", "b3"]
    groups = [(g.deadline_s, g.count, g.price) for g in owed[0].groups]
    assert groups == [(1.0, 2, 3.0), (5.0, 1, 1.0)]
