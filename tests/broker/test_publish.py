"""What a publication sets in motion at its own broker."""

import pytest
from msgspec.structs import astuple
from support.builders import (
    START,
    a_broker,
    a_message,
    a_subscription,
    deliveries,
    rows,
    sends,
)

from tidings.broker.control import interests
from tidings.broker.effects import Record
from tidings.core.contract import Contract, TopicPolicy
from tidings.core.trace import Delivered, Dropped, Published


def test_a_message_that_nobody_wants_is_recorded_and_goes_nowhere() -> None:
    effects = a_broker().publish(a_message("lonely", b"12345", id=7, deadline_s=2.0), START)
    row = Published(START, "b1", 7, "lonely", 5, 2.0, 1.0, "d-tree", "")
    assert effects == [Record(row)]


def test_a_local_subscriber_is_served_at_once_and_the_overlay_hears_nothing() -> None:
    broker = a_broker()
    broker.subscribe(a_subscription("b1"), 0.5)
    message = a_message()
    effects = broker.publish(message, START)
    assert [(d.subscriptions, d.message, d.age_s) for d in deliveries(effects)] == [
        (("b1/c:t",), message, 0.0)
    ]
    assert rows(effects, Delivered) == [
        Delivered(START, "b1", message.id, 0.0, 0, ("b1/c:t",)),
    ]
    assert not sends(effects)


def test_a_remote_subscriber_gets_one_copy_over_the_link_to_its_broker() -> None:
    broker = a_broker(wishes=[a_subscription("b2", "c1"), a_subscription("b2", "c2")])
    message = a_message()
    effects = broker.publish(message, START)
    [(neighbour, data)] = sends(effects)
    assert neighbour == "b2"
    assert data.envelope.message == message
    assert [d.broker for d in data.envelope.destinations] == ["b2"]
    assert [g.count for g in data.envelope.destinations[0].groups] == [2]
    assert data.envelope.path == ("b1",)
    assert data.envelope.age_s == 0.0


def test_the_published_row_tells_what_predicates_may_ask_and_nothing_of_its_audience() -> None:
    broker = a_broker(wishes=[a_subscription("b2")])
    broker.subscribe(a_subscription("b1"), 0.5)
    told = [
        rows(broker.publish(a_message(payload=payload), START), Published)[0]
        for payload in (b"plain", b'{"x": 2, "y": [1]}')
    ]
    assert [row.attributes for row in told] == ["", '{"x":2}']
    assert not any("b2" in str(value) for row in told for value in astuple(row))


def test_a_broker_says_to_whom_a_message_would_be_owed() -> None:
    wishes = [a_subscription("b2", where="x < 3"), a_subscription("b3")]
    broker = a_broker(wishes=wishes)
    broker.subscribe(a_subscription("b1"), 0.5)
    assert broker.owing(a_message(payload=b'{"x": 2}')) == ("b2", "b3")
    assert broker.owing(a_message(payload=b'{"x": 3}')) == ("b3",)
    assert broker.owing(a_message("elsewhere")) == ()


def test_a_predicate_decides_by_the_content_of_each_message() -> None:
    broker = a_broker(wishes=[a_subscription("b2", where="x < 3")])
    assert sends(broker.publish(a_message(payload=b'{"x": 2}'), START))
    assert not sends(broker.publish(a_message(payload=b'{"x": 4}'), START))
    assert not sends(broker.publish(a_message(payload=b"no json"), START))


def test_a_payload_of_endless_nesting_does_not_stop_the_broker() -> None:
    broker = a_broker(wishes=[a_subscription("b2", where="x < 3")])
    assert not sends(broker.publish(a_message(payload=b'{"x":' + b"[" * 200_000), START))


def test_without_a_link_that_is_up_the_message_is_dropped_for_want_of_a_route() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], exhausted="drop")
    broker.link_down("b2", START)
    [dropped] = rows(broker.publish(a_message(), START), Dropped)
    assert (dropped.reason, dropped.destinations) == ("no-route", ("b2",))


def test_a_strategy_that_this_broker_does_not_know_is_a_reason_to_drop() -> None:
    broker = a_broker(wishes=[a_subscription("b2")])
    [dropped] = rows(broker.publish(a_message(strategy="magic"), START), Dropped)
    assert (dropped.reason, dropped.destinations) == ("unknown-strategy", ("b2",))


def test_a_contract_may_name_another_strategy_than_the_brokers_own() -> None:
    broker = a_broker(neighbours=("b2", "b3"), wishes=[a_subscription("b2")])
    effects = broker.publish(a_message(strategy="flooding"), START)
    assert [neighbour for neighbour, _ in sends(effects)] == ["b2", "b3"]
    assert rows(effects, Published)[0].strategy == "flooding"


def test_the_first_topic_policy_that_fits_gives_the_default_contract() -> None:
    tight, loose = Contract(deadline_s=0.1, late="drop"), Contract(deadline_s=9.0)
    broker = a_broker(policies=(TopicPolicy("a/+", tight), TopicPolicy("a/#", loose)))
    assert broker.default_contract("a/b") == tight
    assert broker.default_contract("a/b/c") == loose
    assert broker.default_contract("b") == Contract()


def test_ids_of_one_broker_never_repeat_and_belong_to_it_alone() -> None:
    one, other = a_broker("b1"), a_broker("b2", ["b1"])
    taken = [one.message_ids.take() for _ in range(100)]
    others = [other.message_ids.take() for _ in range(100)]
    assert len(set(taken + others)) == 200


def test_ever_new_contracts_on_one_topic_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interests, "OWED_BYTES", 400_000)
    broker = a_broker(wishes=[a_subscription("b2")], window_bytes=1)
    for number in range(3_000):
        broker.publish(a_message(deadline_s=1.0 + number), START)
    owed = broker._interests.wanted(a_message()).owed
    assert len(owed) <= 1_000
