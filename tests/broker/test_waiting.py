"""The waiting room: who is tried again and when, in the room itself and in brokers."""

from collections.abc import Iterable
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import (
    LINE,
    START,
    Net,
    a_broker,
    a_data,
    a_message,
    a_parcel,
    a_subscription,
    acknowledge,
    connected,
    deliveries,
    nothing,
    pinned,
    rows,
    sends,
)
from support.values import replace

from tidings.broker.broker import Broker
from tidings.broker.effects import Forget
from tidings.broker.frames import Ack, Data, Links
from tidings.broker.settings import Settings
from tidings.broker.waiting import LONGEST_PAUSE, WaitingRoom
from tidings.core.links.estimates import LinkEstimate
from tidings.core.parcel import Parcel
from tidings.core.trace import Dropped

EVERY_S = 1.0


def a_room(most: int = 100) -> WaitingRoom:
    return WaitingRoom(Settings(retry_every_s=EVERY_S, waiting_parcels=most))


def waiting(number: int, born_at: float = 0.0) -> Parcel:
    return a_parcel("b2", born_at=born_at, message=a_message(id=number))


def numbers(parcels: Iterable[Parcel]) -> list[int]:
    return [parcel.message.id for parcel in parcels]


# ---- the room


def test_an_empty_room_never_wakes_anybody() -> None:
    room = a_room()
    assert room.due_at == inf
    assert not list(room.due(1e9))
    room.hasten(5.0)
    assert room.due_at == inf


def test_parcels_come_out_when_their_pause_ends_and_once() -> None:
    room = a_room()
    room.take(waiting(1, born_at=10.0), 10.0)
    room.take(waiting(2, born_at=10.5), 10.5)
    assert room.due_at == 11.0
    assert numbers(room.due(10.999)) == []
    assert numbers(room.due(11.0)) == [1]
    assert room.due_at == 11.5
    assert numbers(room) == [2]
    assert numbers(room.due(20.0)) == [2]
    assert room.due_at == inf


@pytest.mark.parametrize(
    ("age_s", "pause_s"),
    [(0.0, 1.0), (1.9, 1.0), (4.0, 2.0), (20.0, 10.0), (64.0, 32.0), (9000.0, LONGEST_PAUSE)],
)
def test_the_older_a_parcel_the_more_rarely_it_is_tried(age_s: float, pause_s: float) -> None:
    room = a_room()
    room.take(waiting(1, born_at=100.0 - age_s), 100.0)
    assert room.due_at == pytest.approx(100.0 + pause_s)


def test_a_day_of_retries_is_a_few_thousand_and_the_first_minute_about_ten() -> None:
    room, tries = a_room(), []
    room.take(waiting(1), 0.0)
    while room.due_at < 86_400.0:
        now = room.due_at
        tries.append(now)
        [parcel] = room.due(now)
        room.take(parcel, now)
    assert 8 <= len([at for at in tries if at < 60.0]) <= 12
    assert len(tries) < 86_400 / LONGEST_PAUSE + 20


def test_those_of_equal_age_come_out_in_the_order_they_came() -> None:
    room = a_room()
    for number in (3, 1, 2):
        room.take(waiting(number), 0.0)
    assert numbers(room.due(1.0)) == [3, 1, 2]


def test_a_full_room_refuses_and_has_room_again_when_one_leaves() -> None:
    room = a_room(most=2)
    assert [room.take(waiting(number), 0.0) for number in (1, 2, 3)] == [True, True, False]
    assert numbers(room) == [1, 2]
    next(room.due(1.0))
    assert room.take(waiting(3), 1.0)


def test_hastened_parcels_come_out_in_the_order_they_came() -> None:
    room = a_room()
    for number in range(50):  # the first of them would have to wait for longest
        room.take(waiting(number, born_at=number - 60.0), 0.0)
    room.hasten(0.5)
    assert numbers(room.due(1.5)) == list(range(50))


def test_hastened_parcels_try_soon_unless_they_are_due_sooner() -> None:
    room = a_room()
    room.take(waiting(1, born_at=-60.0), 0.0)  # due at 30
    room.take(waiting(2, born_at=-40.0), 0.0)  # due at 20
    room.take(waiting(3), 9.5)  # due at 14.25
    room.take(waiting(4, born_at=9.5), 9.5)  # due at 10.5, which is sooner than soon
    room.hasten(10.0)
    assert room.due_at == 10.5
    assert numbers(room.due(10.5)) == [4]
    assert room.due_at == 11.0
    assert numbers(room.due(11.0)) == [1, 2, 3]
    assert room.due_at == inf


@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "due", "hasten"]), st.floats(0, 50), st.floats(0, 100))
    )
)
def test_whatever_happens_every_parcel_comes_out_once_and_never_before_its_time(
    story: list[tuple[str, float, float]],
) -> None:
    """The oracle is a plain dict of when each is due."""
    room, due, now = a_room(most=5), dict[int, float](), 0.0
    for number, (what, passed_s, age_s) in enumerate(story):
        now += passed_s
        if what == "take":
            taken = room.take(waiting(number, born_at=now - age_s), now)
            assert taken == (len(due) < 5)
            if taken:
                due[number] = now + max(1.0, min((now - (now - age_s)) / 2, 32.0))
        elif what == "hasten":
            room.hasten(now)
            due = {known: min(at, now + 1.0) for known, at in due.items()}
        else:
            assert sorted(numbers(room.due(now))) == sorted(n for n, at in due.items() if at <= now)
            due = {known: at for known, at in due.items() if at > now}
        assert room.due_at == min(due.values(), default=inf)
        assert sorted(numbers(room)) == sorted(due)


# ---- brokers that wait


def dark_pair(**settings: Any) -> tuple[Net, list[bool]]:
    """Two brokers under `dcrd`, a wish at b2, and a switch that darkens data in between."""
    dark = [False]
    net = connected(("b1", "b2"), strategy="dcrd", **settings)
    net.subscribe("b2")
    net.run(1.0)
    net.loses = lambda sender, receiver, frame: dark[0] and isinstance(frame, Data)
    return net, dark


def test_with_retry_a_parcel_that_tried_every_way_is_kept_and_tried_afresh() -> None:
    net, dark = dark_pair(exhausted="retry")
    dark[0] = True
    message = net.publish("b1")
    net.run(0.5)
    assert numbers(net.brokers["b1"].holding()) == [message]
    net.run(4.5)
    tried = net.frames(Data)
    assert 3 <= len(tried) <= 5
    assert len({frame.transmission for frame in tried}) == len(tried)  # new copies, each of them
    assert {(f.envelope.path, f.envelope.given_up) for f in tried} == {(("b1",), ())}
    dark[0] = False
    net.run(5.0)
    assert net.delivered == [("b2/c:t", message)]
    assert not list(net.brokers["b1"].holding())
    assert not net.rows_of(Dropped)


def test_with_drop_it_is_dropped_as_exhausted() -> None:
    net, dark = dark_pair(exhausted="drop")
    dark[0] = True
    message = net.publish("b1")
    net.run(5.0)
    [row] = net.rows_of(Dropped)
    assert (row.message, row.reason, row.destinations) == (message, "exhausted", ("b2",))
    assert not list(net.brokers["b1"].holding())


def test_what_finds_the_room_full_is_dropped_with_that_reason() -> None:
    net, dark = dark_pair(exhausted="retry", waiting_parcels=2)
    dark[0] = True
    messages = [net.publish("b1") for _ in range(3)]
    net.run(0.5)
    assert [(r.message, r.reason) for r in net.rows_of(Dropped)] == [(messages[2], "queue-full")]
    assert sorted(numbers(net.brokers["b1"].holding())) == messages[:2]
    dark[0] = False
    net.run(5.0)
    assert sorted(message for _, message in net.delivered) == messages[:2]


def test_large_messages_fill_the_room_sooner() -> None:
    net, dark = dark_pair(exhausted="retry", waiting_bytes=2_000)
    dark[0] = True
    messages = [net.publish("b1", payload=bytes(1_000)) for _ in range(3)]
    net.run(0.5)
    assert [(r.message, r.reason) for r in net.rows_of(Dropped)] == [(messages[2], "queue-full")]


def test_publishers_are_slowed_while_much_that_is_durable_waits() -> None:
    net, dark = dark_pair(waiting_bytes=4_000)
    dark[0], broker = True, net.brokers["b1"]
    net.publish("b1", durable=True, payload=bytes(1_000))
    net.run(0.5)
    assert not broker.crowded
    messages = [net.publish("b1", durable=True, payload=bytes(1_000)) for _ in range(5)]
    net.run(0.5)
    assert broker.crowded
    assert not net.rows_of(Dropped), "and yet it is kept"
    dark[0] = False
    net.run(60.0)
    assert not broker.crowded
    assert {message for _, message in net.delivered} >= set(messages)


def test_a_broker_without_memory_leaves_what_is_durable_to_its_neighbour() -> None:
    broker = a_broker("b2", ["b1"], waiting_bytes=100)
    frames = [a_data(number, a_message(id=number, payload=bytes(200)), "b3") for number in (1, 2)]
    for frame, answered in zip(frames, (True, False), strict=True):
        durable = replace(frame, envelope=replace(frame.envelope, durable=True))
        assert bool(sends(broker.receive("b1", durable, START), Ack)) is answered


def test_the_end_of_the_contract_is_the_end_of_waiting() -> None:
    net, dark = dark_pair(exhausted="retry")
    dark[0] = True
    message = net.publish("b1", deadline_s=3.0, late="drop")
    net.run(10.0)
    [row] = net.rows_of(Dropped)
    assert (row.message, row.reason) == (message, "exhausted")
    assert row.recorded_at < net.now - 10.0 + 3.0  # when the next try would have been too late
    assert not list(net.brokers["b1"].holding())


def test_what_no_further_try_can_bring_in_time_does_not_wait_and_says_why_it_failed() -> None:
    net, dark = dark_pair()
    dark[0] = True
    message = net.publish("b1", deadline_s=0.5, late="drop")
    net.run(0.3)
    [row] = net.rows_of(Dropped)
    assert (row.message, row.reason) == (message, "exhausted")
    assert not list(net.brokers["b1"].holding())


def test_a_link_that_comes_up_makes_those_who_wait_try_soon() -> None:
    net, dark = dark_pair(exhausted="retry")
    dark[0] = True
    message = net.publish("b1")
    net.run(60.0)
    before, dark[0] = len(net.frames(Data)), False
    assert net.brokers["b1"].wake_at() > net.now + 1.0
    net.tell("b1", "link_up", "b2")
    net.tell("b1", "link_ready", "b2", inf)
    net.run(1.1)
    assert len(net.frames(Data)) == before + 1
    assert net.delivered == [("b2/c:t", message)]


def test_what_is_not_durable_is_given_up_before_its_receiver_may_have_forgotten_it() -> None:
    """The first message sets the end of a generation of memory, the second arrives just before it,
    so it is remembered no longer than promised; its answer is lost, and then everything."""
    net, dark = dark_pair(exhausted="retry", remember_s=20.0)
    first = net.publish("b1")
    net.run(19.9)
    net.loses = lambda sender, receiver, frame: isinstance(frame, Ack) or dark[0]
    second = net.publish("b1")
    net.run(0.015)
    dark[0] = True
    net.run(20.2)
    net.loses = nothing
    net.run(30.0)
    assert [message for _, message in net.delivered] == [first, second]
    [row] = net.rows_of(Dropped)
    assert (row.message, row.reason, row.destinations) == (second, "exhausted", ("b2",))
    assert not list(net.brokers["b1"].holding())


@pytest.mark.parametrize("durable", [True, False])
def test_the_last_try_leaves_time_for_the_way_unless_the_message_is_durable(durable: bool) -> None:
    net, dark = dark_pair(exhausted="retry", remember_s=20.0)
    dark[0] = True
    published_at, message = net.now, net.publish("b1", durable=durable)
    net.run(100.0)
    tried_at = [at - published_at for at, _, _, frame in net.said if isinstance(frame, Data)]
    if durable:
        assert max(tried_at) > 60.0
        assert numbers(net.brokers["b1"].holding()) == [message]
    else:
        assert 10.0 < max(tried_at) < 15.0
        assert [row.message for row in net.rows_of(Dropped)] == [message]


def test_several_messages_are_tried_again_in_the_order_of_their_publication() -> None:
    net, dark = dark_pair(exhausted="retry")
    dark[0] = True
    messages = [net.publish("b1") for _ in range(20)]
    net.run(0.5)
    dark[0] = False
    net.run(3.0)
    assert [message for _, message in net.delivered] == messages


# ---- by default, whatever the strategy

ONE_WAY = ["d-tree", "r-tree", "direct", "balanced", "best-path", "qos-path", "dcrd"]


@pytest.mark.parametrize("strategy", ONE_WAY)
def test_a_message_whose_only_link_is_dark_waits_for_it_and_arrives_once(strategy: str) -> None:
    net = connected(("b1", "b2"), strategy=strategy)
    net.subscribe("b2")
    net.run(1.0)
    net.loses = lambda sender, receiver, frame: isinstance(frame, Data)
    message = net.publish("b1")
    net.run(2.5)
    assert numbers(net.brokers["b1"].holding()) == [message]
    net.loses = nothing
    net.run(5.0)
    assert net.delivered == [("b2/c:t", message)]
    assert not net.rows_of(Dropped)


@pytest.mark.parametrize("strategy", ONE_WAY)
def test_what_was_on_a_link_that_goes_down_waits_until_it_is_up(strategy: str) -> None:
    net = connected(("b1", "b2"), strategy=strategy, window_bytes=1)
    net.subscribe("b2")
    net.run(1.0)
    net.loses = lambda sender, receiver, frame: isinstance(frame, Data)
    messages = [net.publish("b1") for _ in range(3)]  # one is on its way, two are in the queue
    net.disconnect("b1", "b2")
    messages.append(net.publish("b1"))
    net.loses = nothing
    net.run(5.0)
    net.connect("b1", "b2")
    net.run(5.0)
    assert sorted(message for _, message in net.delivered) == messages
    assert not net.rows_of(Dropped)


@pytest.mark.parametrize("strategy", ONE_WAY)
def test_what_arrived_without_an_answer_is_tried_again_and_delivered_once(strategy: str) -> None:
    net = connected(("b1", "b2"), strategy=strategy)
    net.subscribe("b2")
    net.run(1.0)
    net.loses = lambda sender, receiver, frame: isinstance(frame, Ack)
    message = net.publish("b1")
    net.run(200.0)
    assert len(net.frames(Data)) > 5
    assert net.delivered == [("b2/c:t", message)]
    assert not list(net.brokers["b1"].holding())  # it has been given up in the end


@pytest.mark.parametrize("strategy", ["flooding", "multipath", "qos-multipath"])
def test_a_copy_that_fails_is_left_to_the_others_and_does_not_wait(strategy: str) -> None:
    net = connected(("b1", "b2"), ("b2", "b3"), ("b1", "b3"), strategy=strategy)
    net.subscribe("b3")
    net.run(1.0)
    net.loses = lambda a, b, frame: isinstance(frame, Data) and (a, b) == ("b1", "b3")
    message = net.publish("b1")
    net.run(10.0)
    assert net.delivered == [("b3/c:t", message)]
    assert not list(net.brokers["b1"].holding())
    assert len(net.frames(Data, sender="b1")) == 2


@pytest.mark.parametrize("strategy", ["flooding", "multipath", "qos-multipath"])
def test_what_no_copy_could_leave_with_waits_at_its_source(strategy: str) -> None:
    net = connected(("b1", "b2"), strategy=strategy)
    net.subscribe("b2")
    net.run(1.0)
    net.disconnect("b1", "b2")
    message = net.publish("b1")
    net.run(3.0)
    net.connect("b1", "b2")
    net.run(5.0)
    assert net.delivered == [("b2/c:t", message)]


def test_those_who_waited_for_one_link_find_room_in_its_queue_bit_by_bit() -> None:
    net = connected(("b1", "b2"), queue_parcels=3, window_bytes=1)
    net.subscribe("b2")
    net.run(1.0)
    net.disconnect("b1", "b2")
    messages = [net.publish("b1") for _ in range(12)]
    net.run(3.0)
    net.connect("b1", "b2")
    net.run(30.0)
    assert sorted(message for _, message in net.delivered) == messages
    assert not net.rows_of(Dropped)


def test_what_finds_a_queue_full_at_once_is_dropped() -> None:
    broker = a_broker(wishes=[a_subscription("b2")], queue_parcels=1, window_bytes=1)
    said = [broker.publish(a_message(id=number), START) for number in (1, 2, 3)]
    dropped = [row for effects in said for row in rows(effects, Dropped)]
    assert [(row.message, row.reason) for row in dropped] == [(3, "queue-full")]


# ---- a destination that has restarted


@pytest.mark.parametrize(("doubtful", "taken"), [(True, False), (False, True)])
def test_a_broker_refuses_what_an_earlier_incarnation_may_have_delivered(
    doubtful: bool, taken: bool
) -> None:
    """The copy waited before this broker began; was one of it sent before that?"""
    broker = Broker("b2", pinned(), {"b1": LinkEstimate(0.010)}, incarnation=2)
    broker.link_up("b1", START)
    broker.subscribe(a_subscription("b2"), START)
    frame = a_data(7, a_message(id=5), "b2", age_s=10.0)
    envelope = replace(frame.envelope, restarts=1, doubtful=doubtful)
    effects = broker.receive("b1", replace(frame, envelope=envelope), START + 1.0)
    assert bool(deliveries(effects)) == taken
    assert [row.reason for row in rows(effects, Dropped)] == ([] if taken else ["broker-failed"])
    assert [frame for _, frame in sends(effects, Ack)] == [Ack((7,))]  # so that nobody tries again
    younger = replace(envelope, message=a_message(id=6), age_s=0.5)
    effects = broker.receive("b1", Data(8, younger), START + 1.0)
    assert [effect.message.id for effect in deliveries(effects)] == [6]


# ---- links of others that come and go


def links_of(origin: str, version: int, *near: str, delay_s: float = 0.01) -> Links:
    return Links(version, origin, 1, version, tuple((n, LinkEstimate(delay_s)) for n in near))


def test_only_a_report_that_brings_a_usable_link_makes_those_who_wait_try_soon() -> None:
    broker = a_broker("b1", ["b2"])
    broker.receive("b2", links_of("b2", 1, "b1", "b3"), START)
    broker.receive("b2", replace(links_of("b3", 1, "b2", "b4"), transmission=101), START)
    stored = replace(a_parcel("b9", born_at=START - 100.0), durable=True)
    broker.restore([stored], START)
    patient = START + LONGEST_PAUSE
    for report, hastens in (
        (links_of("b2", 2, "b1", "b3", delay_s=0.05), False),  # another estimate
        (links_of("b2", 3, "b1"), False),  # a link is gone
        (replace(links_of("b3", 2, "b4"), transmission=102), False),
        (links_of("b2", 4, "b1", "b3"), False),  # the other end denies it
        (replace(links_of("b3", 3, "b4", "b2"), transmission=103), True),  # no longer
    ):
        assert broker.wake_at() == patient
        broker.receive("b2", report, START + 1.0)
        assert broker.wake_at() == (START + 1.0 + 1.0 if hastens else patient)


def test_a_link_of_others_that_flaps_makes_nobody_try_more_than_once_per_change() -> None:
    net = connected(*LINE, strategy="dcrd", exhausted="retry")
    net.subscribe("b3")
    net.run(1.0)
    net.disconnect("b2", "b3")
    net.run(1.0)
    net.loses = lambda sender, receiver, frame: isinstance(frame, Data)
    net.publish("b1", durable=True)
    net.run(100.0)  # its pauses have become long
    for up_s, most in ((1.5, 6), (0.1, 2)):  # of changes in short order, several are one
        before = len(net.frames(Data, sender="b1"))
        for _ in range(5):
            net.connect("b2", "b3")
            net.run(up_s)
            net.disconnect("b2", "b3")
            net.run(up_s)
        net.connect("b2", "b3")
        net.run(2.0)
        assert 1 <= len(net.frames(Data, sender="b1")) - before <= most
        net.disconnect("b2", "b3")


# ---- what an earlier incarnation left behind


def test_what_was_stored_is_tried_again_after_a_restart() -> None:
    broker = a_broker("b1", ["b2"], [a_subscription("b2")])
    stored = [replace(a_parcel("b2", path=("b0", "b1")), durable=True) for _ in range(2)]
    assert broker.restore(stored, START) == []
    assert numbers(broker.holding()) == numbers(stored)
    assert broker.wake_at() <= START + 1.0
    effects = broker.tick(START + 1.0)
    assert [frame.envelope.message.id for _, frame in sends(effects)] == numbers(stored)
    assert {frame.envelope.path for _, frame in sends(effects)} == {("b1",)}
    forgotten = [e for e in acknowledge(broker, effects, START + 1.02) if isinstance(e, Forget)]
    assert [(f.message, f.destinations) for f in forgotten] == [
        (number, ("b2",)) for number in numbers(stored)
    ]


def test_what_was_stored_and_has_expired_meanwhile_is_dropped_and_struck_out() -> None:
    broker = a_broker("b1", ["b2"], [a_subscription("b2")])
    stored = replace(a_parcel("b2"), durable=True, born_at=-100.0, expires_at=-50.0)
    owed = replace(stored.destinations[0], expires_s=50.0)
    broker.restore([replace(stored, destinations=(owed,))], START)
    effects = broker.tick(START + 100.0)
    assert [row.reason for row in rows(effects, Dropped)] == ["expired"]
    assert [e.message for e in effects if isinstance(e, Forget)] == [stored.message.id]
    assert not sends(effects)


def test_a_restored_parcel_waits_for_a_way_as_long_as_there_is_none() -> None:
    broker = a_broker("b1", ["b2"], [a_subscription("b9", topic="t")], strategy="dcrd")
    stored = replace(a_parcel("b9"), durable=True, strategy="dcrd")
    broker.restore([stored], START)
    for second in range(1, 200):
        assert not rows(broker.tick(START + second), Dropped)
    assert numbers(broker.holding()) == [stored.message.id]
