"""What an acknowledgement is worth: brokers trust the neighbour that gives it."""

from collections import Counter
from math import inf

from support.builders import DELAY_S, START, a_subscription, pinned, rows, sends, wishes_of
from support.traces import tables_of

from tidings.broker.broker import Broker
from tidings.broker.effects import Effect, Record
from tidings.broker.frames import Ack, Data, Gossip, Interests, Links
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message import Message
from tidings.core.trace import Dropped, Subscribed
from tidings.traces.outcomes import IN_FLIGHT, IN_TIME, outcomes


def a_source() -> tuple[Broker, Broker]:
    """b1 with neighbours b2 and b4, each of which serves somebody, and behind b2 alone b3; and the
    broker b2, which b1 will hand over to."""
    settings = pinned(strategy="dcrd")
    link = LinkEstimate(DELAY_S)
    b1 = Broker("b1", settings, {"b2": link, "b4": link})
    b2 = Broker("b2", settings, {"b1": link, "b3": link})
    for name in ("b2", "b4"):
        b1.link_up(name, 0.0)
        b1.link_ready(name, inf, 0.0)
    for name in ("b1", "b3"):
        b2.link_up(name, 0.0)
    b1.receive("b2", Links(1, "b2", 1, 1, (("b1", link), ("b3", link))), 0.1)
    b1.receive("b4", Links(1, "b4", 1, 1, (("b1", link),)), 0.1)
    for number, (via, home) in enumerate((("b2", "b3"), ("b4", "b4")), start=2):
        wish = a_subscription(home, topic=home)
        b1.receive(via, Interests(number, home, 1, 0, 1, wishes_of(wish)), 0.1)
    for neighbour, frame in sends(b1.tick(0.2), (Links, Gossip)):
        b1.receive(neighbour, Ack((frame.transmission,)), 0.21)
    return b1, b2


def speak(b1: Broker, topic: str, now: float) -> tuple[int, list[Effect]]:
    message = Message(b1.message_ids.take(), topic, b"")
    return message.id, b1.publish(message, now)


def test_a_neighbour_that_acknowledges_and_then_drops_loses_the_message_in_silence() -> None:
    """Stated outcome: acknowledgements are hop by hop, and who acknowledges answers for the message
    from then on. So the first broker is done with it, keeps nothing, tries nobody else and leaves
    no row; if the neighbour then drops it without a word, the pipeline can only say "in-flight":
    neither delivered nor dropped by anybody. Messages over other links are not disturbed."""
    b1, b2 = a_source()
    said: list[Effect] = [
        Record(Subscribed(0.0, home, f"{home}/c:{home}", home, "", inf, 1.0, True))
        for home in ("b3", "b4")
    ]
    lost, effects = speak(b1, "b3", START)
    [(neighbour, data)] = sends(effects)
    assert neighbour == "b2"
    [(_, ack)] = sends(b2.receive("b1", data, START + DELAY_S), Ack)  # and all else is dropped
    said += effects + b1.receive("b2", ack, START + 2 * DELAY_S)

    other, effects = speak(b1, "b4", START + 0.005)
    [(neighbour, data)] = sends(effects)
    assert neighbour == "b4"
    b4 = Broker("b4", pinned(strategy="dcrd"), {"b1": LinkEstimate(DELAY_S)})
    b4.subscribe(a_subscription("b4", topic="b4"), 0.0)
    answers = b4.receive("b1", data, START + 0.005 + DELAY_S)
    [(_, ack)] = sends(answers, Ack)
    said += effects + answers + b1.receive("b4", ack, START + 0.005 + 2 * DELAY_S)

    for second in range(1, 120):
        said += b1.tick(START + second)
    assert not list(b1.holding())
    assert not rows(said, Dropped)
    assert Counter(frame.envelope.message.id for _, frame in sends(said, Data)) == {
        lost: 1,
        other: 1,
    }
    judged = outcomes(tables_of({"run": [e.row for e in said if isinstance(e, Record)]}))
    found = dict(zip(judged["message"].to_pylist(), judged["outcome"].to_pylist(), strict=True))
    assert found == {lost: IN_FLIGHT, other: IN_TIME}
