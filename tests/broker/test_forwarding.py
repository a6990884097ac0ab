"""From receipt to the next broker: acknowledgement, repeats, expiry and back-pressure."""

from math import inf

import pytest
from support.builders import (
    DELAY_S,
    LINE,
    START,
    TRIANGLE,
    a_broker,
    a_data,
    a_destination,
    a_message,
    a_subscription,
    acknowledge,
    connected,
    deliveries,
    rows,
    sends,
)

from tidings.broker.effects import Send, Warn
from tidings.broker.frames import Ack, Data
from tidings.core.trace import Acknowledged, Carried, Delivered, Dropped, Forwarded, LinkChanged

TIMEOUT_S = 2 * DELAY_S + 0.010  # the default timer and slack


# ---- acknowledgement


def test_receipt_is_acknowledged_before_anything_else_happens() -> None:
    broker = a_broker("b2", ["b1", "b3"], [a_subscription("b3")])
    effects = broker.receive("b1", a_data(5, a_message(), "b3"), START)
    assert isinstance(effects[0], Send)
    assert (effects[0].neighbour, effects[0].frame) == ("b1", Ack((5,)))
    [(neighbour, data)] = sends(effects)
    assert neighbour == "b3"
    assert data.envelope.path == ("b1", "b2")


def test_each_hop_adds_residence_and_link_delay_to_the_age() -> None:
    broker = a_broker("b2", ["b1", "b3"], [a_subscription("b3")], room_bytes=0)
    broker.receive("b1", a_data(5, a_message(), "b3", age_s=0.2), START)
    [(_, data)] = sends(broker.link_ready("b3", inf, START + 0.5))
    assert data.envelope.age_s == pytest.approx(0.2 + DELAY_S + 0.5)


def test_what_is_acknowledged_in_time_is_never_sent_again() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], transmissions=3)
    acknowledge(broker, broker.publish(a_message(), START), START + 2 * DELAY_S)
    assert not sends(broker.tick(START + 10.0))
    assert not list(broker.holding())


# ---- retransmission


def test_an_unacknowledged_parcel_is_repeated_under_the_same_id_when_the_timer_ends() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], transmissions=2)
    [(_, first)] = sends(broker.publish(a_message(), START))
    assert broker.wake_at() == pytest.approx(START + TIMEOUT_S)
    assert not sends(broker.tick(START + TIMEOUT_S - 0.001))
    [again] = [e for e in broker.tick(START + TIMEOUT_S + 1e-9) if isinstance(e, Send)]
    assert isinstance(again.frame, Data)
    assert again.frame.transmission == first.transmission
    assert again.attempt == 2
    assert again.frame.envelope.age_s == pytest.approx(TIMEOUT_S)


@pytest.mark.parametrize("transmissions", [1, 2, 4])
def test_after_m_attempts_a_parcel_is_given_up_with_a_reason(transmissions: int) -> None:
    net = connected(("b1", "b2"), transmissions=transmissions, exhausted="drop")
    net.subscribe("b2")
    net.run(1.0)
    net.loses = lambda sender, receiver, frame: isinstance(frame, Data)
    message = net.publish("b1")
    net.run(5.0)
    data = net.frames(Data)
    assert len(data) == transmissions
    assert len({frame.transmission for frame in data}) == 1
    [dropped] = net.rows_of(Dropped)
    assert (dropped.message, dropped.reason) == (message, "unacknowledged")
    assert dropped.destinations == ("b2",)
    assert not list(net.brokers["b1"].holding())


def test_a_repeat_of_a_transmission_is_acknowledged_again_but_discarded() -> None:
    broker = a_broker("b2", ["b1", "b3"], [a_subscription("b3")])
    broker.subscribe(a_subscription("b2"), 0.5)
    data = a_data(5, a_message(), "b2", "b3")
    broker.receive("b1", data, START)
    effects = broker.receive("b1", data, START + 0.1)
    assert [e.frame for e in effects if isinstance(e, Send)] == [Ack((5,))]
    assert len(effects) == 1


def test_with_a_lost_acknowledgement_the_message_still_arrives_once() -> None:
    net = connected(*LINE, transmissions=3)
    wish = net.subscribe("b3")
    net.run(1.0)
    lost: list[Ack] = []

    def loses_first_ack(sender: str, receiver: str, frame: object) -> bool:
        if isinstance(frame, Ack) and (sender, receiver) == ("b2", "b1") and not lost:
            lost.append(frame)
            return True
        return False

    net.loses = loses_first_ack
    message = net.publish("b1")
    net.run(2.0)
    assert lost
    assert net.delivered == [(wish, message)]
    assert len(net.frames(Data, "b1", "b2")) == 2
    assert len(net.frames(Data, "b2", "b3")) == 1
    assert not net.rows_of(Dropped)


def test_an_acknowledgement_that_comes_too_late_is_nobodys_business() -> None:
    broker = a_broker(wishes=[a_subscription("b2")])
    effects = broker.publish(a_message(), START)
    broker.tick(START + 1.0)
    assert acknowledge(broker, effects, START + 1.1) == []
    assert broker.receive("b2", Ack((999,)), START + 1.2) == []


# ---- copies


def test_another_paths_copy_is_a_new_transmission_and_is_forwarded() -> None:
    broker = a_broker("b2", ["b1", "b3", "b4"], [a_subscription("b4")])
    message = a_message()
    first = broker.receive("b1", a_data(5, message, "b4", path=("b1",)), START)
    second = broker.receive("b3", a_data(5, message, "b4", path=("b1", "b3")), START + 0.1)
    assert [n for n, _ in sends(first)] == ["b4"]
    assert [n for n, _ in sends(second)] == ["b4"]


def test_a_subscription_is_served_once_however_many_copies_come() -> None:
    broker = a_broker("b2", ["b1", "b3"])
    broker.subscribe(a_subscription("b2"), 0.5)
    message = a_message()
    first = broker.receive("b1", a_data(5, message, "b2"), START)
    second = broker.receive("b3", a_data(9, message, "b2"), START + 0.1)
    assert len(deliveries(first)) == 1
    assert not deliveries(second)
    assert not rows(second, Dropped)


def test_a_broker_serves_its_own_and_passes_on_what_it_owes_to_others() -> None:
    broker = a_broker("b2", ["b1", "b3", "b4"], [a_subscription("b3"), a_subscription("b4")])
    broker.subscribe(a_subscription("b2"), 0.5)
    message = a_message()
    effects = broker.receive("b1", a_data(5, message, "b2", "b3", "b4"), START)
    assert [d.subscriptions for d in deliveries(effects)] == [("b2/c:t",)]
    served = [(n, [d.broker for d in f.envelope.destinations]) for n, f in sends(effects)]
    assert served == [("b3", ["b3"]), ("b4", ["b4"])]
    [delivered] = rows(effects, Delivered)
    assert delivered.hops == 1
    assert delivered.age_s == pytest.approx(DELAY_S)


def test_a_copy_that_owes_nothing_to_anybody_ends_here() -> None:
    broker = a_broker("b2", ["b1", "b3"])
    effects = broker.receive("b1", a_data(5, a_message(), strategy="d-tree"), START)
    assert [e.frame for e in effects if isinstance(e, Send)] == [Ack((5,))]
    assert not rows(effects, Dropped)


def test_a_data_frame_of_an_unknown_strategy_is_dropped_with_that_reason() -> None:
    broker = a_broker("b2", ["b1", "b3"])
    effects = broker.receive("b1", a_data(5, a_message(), "b3", strategy="magic"), START)
    assert [row.reason for row in rows(effects, Dropped)] == ["unknown-strategy"]


def test_a_parcel_never_goes_back_to_a_broker_that_has_held_it() -> None:
    net = connected(*TRIANGLE, exhausted="drop")
    effects = net.brokers["b2"].receive("b1", a_data(5, a_message(), "b1", path=("b1",)), net.now)
    assert not sends(effects)
    assert [row.reason for row in rows(effects, Dropped)] == ["no-route"]


# ---- deadlines


def test_an_expired_message_never_reaches_the_link() -> None:
    wish = a_subscription("b2", deadline_s=0.5, late="drop")
    broker = a_broker(wishes=[wish], room_bytes=0)
    assert not sends(broker.publish(a_message(), START))
    effects = broker.link_ready("b2", inf, START + 0.6)
    assert not sends(effects)
    assert [row.reason for row in rows(effects, Dropped)] == ["expired"]


def test_at_its_deadline_to_the_instant_a_message_is_not_late_yet() -> None:
    wish = a_subscription("b2", deadline_s=0.5, late="drop")
    broker = a_broker(wishes=[wish], room_bytes=0)
    broker.publish(a_message(), START)
    assert len(sends(broker.link_ready("b2", inf, START + 0.5))) == 1
    taker = a_broker("b2", ["b1"])
    taker.subscribe(wish, 0.5)
    owed = a_destination("b2", (0.5, 1), expires_s=0.5)
    now = START + 0.25  # exact in binary, as are the numbers below
    taker._links["b1"].delay_s = 0.125
    assert deliveries(taker.receive("b1", a_data(1, a_message(), owed, age_s=0.375), now))


def test_a_late_message_is_delivered_late_where_late_is_welcome() -> None:
    wish = a_subscription("b2", deadline_s=0.5)
    broker = a_broker(wishes=[wish], room_bytes=0)
    broker.publish(a_message(), START)
    assert len(sends(broker.link_ready("b2", inf, START + 0.6))) == 1
    taker = a_broker("b2", ["b1"])
    taker.subscribe(wish, 0.5)
    [delivered] = deliveries(taker.receive("b1", a_data(1, a_message(), "b2", age_s=0.6), START))
    assert delivered.age_s == pytest.approx(0.6 + DELAY_S)


def test_of_two_clients_only_the_one_who_drops_goes_without_a_late_message() -> None:
    broker = a_broker("b2", ["b1"])
    broker.subscribe(a_subscription("b2", "strict", deadline_s=0.5, late="drop"), 0.5)
    broker.subscribe(a_subscription("b2", "lenient", deadline_s=0.5), 0.5)
    effects = broker.receive("b1", a_data(1, a_message(), "b2", age_s=0.6), START)
    assert [d.subscriptions for d in deliveries(effects)] == [("b2/lenient:t",)]
    assert [(r.reason, r.destinations) for r in rows(effects, Dropped)] == [("expired", ("b2",))]


def test_the_publishers_wish_to_drop_binds_every_subscriber() -> None:
    broker = a_broker("b2", ["b1"])
    broker.subscribe(a_subscription("b2", deadline_s=9.0), 0.5)
    message = a_message(deadline_s=0.5, late="drop")
    effects = broker.receive("b1", a_data(1, message, "b2", age_s=0.6), START)
    assert not deliveries(effects)
    assert [row.reason for row in rows(effects, Dropped)] == ["expired"]


def test_an_unacknowledged_parcel_that_has_expired_is_not_repeated() -> None:
    wish = a_subscription("b2", deadline_s=0.02, late="drop")
    broker = a_broker(wishes=[wish], transmissions=5)
    broker.publish(a_message(), START)
    effects = broker.tick(START + TIMEOUT_S + 1e-9)
    assert not sends(effects)
    assert [row.reason for row in rows(effects, Dropped)] == ["expired"]
    assert broker.wake_at() > START + 1.0


# ---- back-pressure


def test_what_does_not_fit_the_queue_is_dropped_with_that_reason() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], room_bytes=0, queue_parcels=2)
    effects = [broker.publish(a_message(id=number), START) for number in (1, 2, 3)]
    dropped = [row for some in effects for row in rows(some, Dropped)]
    assert [(row.message, row.reason) for row in dropped] == [(3, "queue-full")]
    assert [p.message.id for p in broker.holding()] == [1, 2]


def test_a_dropped_message_is_warned_of() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], room_bytes=0, queue_parcels=1)
    effects = broker.publish(a_message(id=1), START) + broker.publish(a_message(id=2), START)
    warnings = [effect.text for effect in effects if isinstance(effect, Warn)]
    assert warnings == ["a queue is full: messages for b2 are dropped"]


def test_a_broker_says_for_whom_too_much_waits_until_it_has_left() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], room_bytes=0, queue_parcels=8)
    said = []
    for number in range(4):
        broker.publish(a_message(id=number), START)
        said.append(list(broker.crowded))
    assert said == [[], [], [], ["b2"]]
    broker.link_ready("b2", 1.0, START)
    assert broker.crowded, "more than a quarter of the queue still waits"
    broker.link_ready("b2", 10_000.0, START)
    assert not broker.crowded


def test_nothing_waits_for_a_link_that_is_gone() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], room_bytes=0, queue_parcels=2)
    broker.publish(a_message(id=1), START)
    assert broker.crowded
    broker.link_down("b2", START)
    assert not broker.crowded


def test_a_link_takes_what_it_has_room_for_and_the_last_parcel_may_overshoot() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], room_bytes=0)
    for number in range(5):
        broker.publish(a_message(payload=bytes(100), id=number), START)
    leaving = sends(broker.link_ready("b2", 150.0, START))
    assert [frame.envelope.message.id for _, frame in leaving] == [0, 1]
    assert len(sends(broker.link_ready("b2", 1.0, START))) == 1


def test_a_full_window_waits_for_acknowledgements() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], window_bytes=1)
    first = broker.publish(a_message(id=1), START)
    second = broker.publish(a_message(id=2), START)
    assert len(sends(first)) == 1
    assert not sends(second)
    [(_, data)] = sends(acknowledge(broker, first, START + 0.02))
    assert data.envelope.message.id == 2
    assert broker.wake_at() <= START + 0.02 + TIMEOUT_S + 1e-9


def test_giving_up_opens_the_window_for_the_next() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], window_bytes=1)
    broker.publish(a_message(id=1), START)
    broker.publish(a_message(id=2), START)
    [(_, data)] = sends(broker.tick(START + TIMEOUT_S + 1e-9))
    assert data.envelope.message.id == 2


def test_a_parcel_that_expires_unanswered_opens_the_window_for_the_next() -> None:
    broker = a_broker(wishes=[a_subscription("b2", late="drop")], window_bytes=1)
    broker.publish(a_message(id=1, deadline_s=0.01), START)
    broker.publish(a_message(id=2, deadline_s=9.0), START)
    [(_, data)] = sends(broker.tick(START + TIMEOUT_S + 1e-9))
    assert data.envelope.message.id == 2


# ---- links that go away


def test_a_link_that_goes_down_gives_up_what_waits_and_what_is_unanswered() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], window_bytes=1, exhausted="drop")
    broker.publish(a_message(id=1), START)
    broker.publish(a_message(id=2), START)
    effects = broker.link_down("b2", START + 0.01)
    dropped = [(row.message, row.reason) for row in rows(effects, Dropped)]
    assert dropped == [(1, "link-down"), (2, "link-down")]
    assert not list(broker.holding())
    assert not sends(broker.tick(START + 10.0))


def test_after_a_link_comes_back_its_window_is_empty() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], window_bytes=1, exhausted="drop")
    broker.publish(a_message(id=1), START)
    broker.link_down("b2", START + 0.01)
    effects = broker.link_up("b2", START + 1.0) + broker.link_ready("b2", inf, START + 1.0)
    acknowledge(broker, effects, START + 1.1)
    broker.tick(START + 1.2)
    assert len(sends(broker.publish(a_message(id=3), START + 1.3))) == 1


def test_the_same_change_of_a_link_is_recorded_once() -> None:
    broker = a_broker()
    changes = [row.up for row in rows(broker.link_down("b2", START), LinkChanged)]
    changes += [row.up for row in rows(broker.link_down("b2", START), LinkChanged)]
    changes += [row.up for row in rows(broker.link_up("b2", START), LinkChanged)]
    changes += [row.up for row in rows(broker.link_up("b2", START), LinkChanged)]
    assert changes == [False, True]


# ---- the trace


def test_at_level_hops_every_transmission_and_its_answer_leave_a_row() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], trace="hops")
    effects = broker.publish(a_message(id=1), START)
    [forwarded] = rows(effects, Forwarded)
    assert (forwarded.message, forwarded.neighbour, forwarded.attempt) == (1, "b2", 1)
    [answered] = rows(acknowledge(broker, effects, START + 0.02), Acknowledged)
    assert answered.transmission == forwarded.transmission
    assert answered.round_trip_s == pytest.approx(0.02)


def test_what_a_link_carried_is_recorded_by_the_minute_and_at_the_end() -> None:
    broker = a_broker("b2", ["b1", "b3"], [a_subscription("b3")], transmissions=2)
    broker.close(0.9)  # the counts so far are none of this test's business
    data = a_data(5, a_message(), "b3")
    broker.receive("b1", data, START)
    broker.receive("b1", data, START + 0.01)
    broker.tick(START + 0.5)
    counted = rows(broker.tick(60.0), Carried)
    assert {(row.neighbour, row.kind): row.frames for row in counted} == {
        ("b1", "ack"): 2,
        ("b1", "discarded"): 1,
        ("b3", "data"): 1,
        ("b3", "repeat"): 1,
    }
    assert not rows(broker.close(61.0), Carried)


def test_a_link_without_delay_or_slack_does_not_ask_for_ever_within_one_instant() -> None:
    net = connected(("b1", "b2"), ack_slack_s=0.0, ack_timer=1e-12)
    net.loses = lambda sender, receiver, frame: True
    net.subscribe("b1")
    net.run(0.05)
    assert len(net.said) < 200


def test_a_queue_is_bounded_by_its_bytes_too() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], room_bytes=0.0, queue_bytes=300)
    kept = broker.publish(a_message(payload=bytes(300)), START)
    refused = broker.publish(a_message(payload=bytes(300)), START)
    assert [row.reason for row in rows(kept + refused, Dropped)] == ["queue-full"]
    [sent] = sends(broker.link_ready("b2", 1e9, START))
    again = broker.publish(a_message(payload=bytes(300)), START)
    assert sends(again)
    assert sent
