"""What comes in together is answered together, and treated as if it had come one by one."""

from hypothesis import given
from hypothesis import strategies as st
from support.builders import (
    START,
    a_broker,
    a_data,
    a_message,
    a_subscription,
    sends,
    some_interests,
)
from support.values import replace

from tidings.broker.broker import Broker
from tidings.broker.effects import Deliver, Effect, Forget, Send, Store
from tidings.broker.frames import Ack, Data, Echo, Probe
from tidings.core.message import Message


def in_the_middle() -> Broker:
    """Between b1 and b3, which both have subscribers, as it has itself."""
    broker = a_broker("b2", ["b1", "b3"], [a_subscription("b3")])
    broker.subscribe(a_subscription("b2"), 0.5)
    return broker


def from_b1(transmission: int, message: Message, *owed: str, durable: bool = False) -> Data:
    frame = a_data(transmission, message, *owed)
    return replace(frame, envelope=replace(frame.envelope, durable=durable))


# ---- messages


def test_one_frame_answers_all_messages_after_those_are_stored_that_must_be() -> None:
    frames = [
        from_b1(5, a_message(), "b3", durable=True),
        from_b1(9, a_message(), "b3"),
        from_b1(6, a_message(), "b3", durable=True),
    ]
    effects = in_the_middle().receive_all("b1", frames, START)
    kinds = [type(effect) for effect in effects]
    assert sends(effects, Ack) == [("b1", Ack((5, 9, 6)))]
    assert kinds == [Store, Store, Send, Send, Send, Send]
    onward = [data.envelope.message.id for _, data in sends(effects)]
    assert onward == [frame.envelope.message.id for frame in frames]


def test_answers_keep_the_order_of_what_they_answer() -> None:
    """Whoever asked behind a message learns by the order that the question has waited for it: a
    round trip that looked undisturbed would tell of a link that is longer than it is."""
    data = [from_b1(number, a_message(), "b2") for number in range(4)]
    wishes = some_interests(a_subscription("b1"), transmission=50)
    frames = [data[0], data[1], Probe(7), data[2], wishes, data[3]]
    effects = in_the_middle().receive_all("b1", frames, START)
    answers = [frame for _, frame in sends(effects, (Ack, Echo))]
    assert answers == [Ack((0, 1)), Echo(7), Ack((2,)), Ack((50,)), Ack((3,))]


def test_an_answer_to_many_counts_as_more_bytes_than_one_to_one() -> None:
    frames = [from_b1(number, a_message(), "b3") for number in range(3)]
    effects = in_the_middle().receive_all("b1", frames, START)
    assert [e.size_bytes for e in effects if isinstance(e, Send) and e.neighbour == "b1"] == [80]


def outcome(effects: list[Effect]) -> tuple[object, ...]:
    """All that becomes of messages, whatever else is said."""
    delivered = [(e.subscriptions, e.message.id) for e in effects if isinstance(e, Deliver)]
    stored = [e.parcel.message.id for e in effects if isinstance(e, Store)]
    onward = [(to, data.envelope) for to, data in sends(effects)]
    answered = [number for _, ack in sends(effects, Ack) for number in ack.transmissions]
    return delivered, stored, onward, answered


@given(
    st.lists(
        st.tuples(
            st.integers(1, 6),  # of few transmissions, so some come again
            st.sampled_from([("b2",), ("b3",), ("b2", "b3")]),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_messages_fare_together_as_they_do_one_by_one(
    said: list[tuple[int, tuple[str, ...], bool]],
) -> None:
    messages = {number: a_message() for number in range(1, 7)}
    frames = [from_b1(number, messages[number], *owed, durable=kept) for number, owed, kept in said]
    together, apart = in_the_middle(), in_the_middle()
    one_by_one = [effect for frame in frames for effect in apart.receive("b1", frame, START)]
    assert outcome(together.receive_all("b1", frames, START)) == outcome(one_by_one)


# ---- answers


def test_an_answer_to_many_lets_go_of_all_of_them_and_as_many_leave_as_there_is_room_for() -> None:
    broker = a_broker("b1", ["b2"], [a_subscription("b2")], window_bytes=1_000)
    messages = [a_message(payload=bytes(300)) for _ in range(9)]
    said = [effect for message in messages for effect in broker.publish(message, START)]
    under_way = [frame.transmission for _, frame in sends(said)]
    assert 1 < len(under_way) < len(messages) - 1
    effects = broker.receive("b2", Ack(tuple(under_way)), START + 0.020)
    assert len(sends(effects)) == len(under_way)  # in their place
    waiting = {parcel.message.id for parcel in broker.holding()}
    assert waiting == {message.id for message in messages[len(under_way) :]}


def test_an_answer_to_many_strikes_out_each_that_was_stored() -> None:
    broker = a_broker("b1", ["b2"], [a_subscription("b2")])
    messages = [a_message(durable=durable) for durable in (True, False, True)]
    said = [effect for message in messages for effect in broker.publish(message, START)]
    answer = Ack(tuple(frame.transmission for _, frame in sends(said)))
    effects = broker.receive("b2", answer, START + 0.020)
    forgotten = [effect.message for effect in effects if isinstance(effect, Forget)]
    assert forgotten == [messages[0].id, messages[2].id]


def test_numbers_that_nobody_waits_for_do_not_keep_an_answer_from_the_others() -> None:
    broker = a_broker("b1", ["b2"], [a_subscription("b2")])
    [(_, frame)] = sends(broker.publish(a_message(), START))
    broker.receive("b2", Ack((1, frame.transmission, 2)), START + 0.020)
    assert not list(broker.holding())
