"""A broker that has restarted keeps durable messages for those who are not back yet."""

from collections.abc import Iterable
from math import inf

import pytest
from support.builders import (
    START,
    a_broker,
    a_destination,
    a_message,
    a_parcel,
    a_subscription,
    acknowledge,
    pinned,
    sends,
    some_interests,
)
from support.values import replace

from tidings.broker.broker import Broker
from tidings.broker.effects import Deliver, Effect, Forget, Send, Store
from tidings.broker.frames import Ack, Data
from tidings.broker.settings import Settings
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message import Message
from tidings.core.parcel import Parcel

WAIT_S = 30.0


def restarted(stored: Iterable[Parcel] = (), at: float = 0.0, incarnation: int = 2) -> Broker:
    """A broker b with a neighbour a, at the beginning of another life."""
    broker = Broker("b", Settings(late_takers_s=WAIT_S), {"a": None}, incarnation)
    broker.restore(stored, at)
    broker.link_up("a", at)
    return broker


def arrives(broker: Broker, message: Message, at: float, takers: int = 1) -> list[Effect]:
    """A durable message comes, for so many subscriptions here."""
    owed = a_destination("b", (1.0, takers))
    parcel = replace(a_parcel(owed, path=("a",), message=message), durable=True)
    return broker.receive("a", Data(message.id, parcel.on_the_wire(at)), at)


def kinds(effects: list[Effect]) -> list[type]:
    """Stored, forgotten, delivered, acknowledged: in which order?"""
    shown = (Store, Forget, Deliver)
    return [
        type(effect)
        for effect in effects
        if isinstance(effect, shown) or (isinstance(effect, Send) and isinstance(effect.frame, Ack))
    ]


def waited(broker: Broker, until: float) -> list[Effect]:
    """All that the broker does by the clock until then."""
    effects: list[Effect] = []
    while (at := broker.wake_at()) <= until:
        effects += broker.tick(at)
    return effects


def test_what_comes_before_a_client_is_back_is_stored_and_given_to_it_when_it_is() -> None:
    broker, said = restarted(), a_message()
    assert kinds(arrives(broker, said, 1.0)) == [Store, Send]
    broker.subscribe(a_subscription("b", "c"), 2.0)
    effects = waited(broker, 3.0)
    assert kinds(effects) == [Deliver, Forget]
    (given,) = [effect for effect in effects if isinstance(effect, Deliver)]
    assert (given.message, given.subscriptions) == (said, ("b/c:t",))
    assert list(broker.holding()) == []


def test_what_everybody_has_got_is_not_kept() -> None:
    broker = restarted()
    broker.subscribe(a_subscription("b", "c"), 0.5)
    assert kinds(arrives(broker, a_message(), 1.0)) == [Deliver, Send]


def test_who_comes_second_gets_it_and_who_came_first_gets_it_once() -> None:
    broker = restarted()
    broker.subscribe(a_subscription("b", "first"), 0.5)
    assert kinds(arrives(broker, a_message(), 1.0, takers=2)) == [Deliver, Store, Send]
    broker.subscribe(a_subscription("b", "second"), 2.0)
    effects = waited(broker, 3.0)
    assert [e.subscriptions for e in effects if isinstance(e, Deliver)] == [("b/second:t",)]
    assert kinds(effects) == [Deliver, Forget]


def test_whoever_does_not_come_back_is_not_waited_for_for_ever() -> None:
    broker = restarted()
    arrives(broker, a_message(), 1.0)
    assert kinds(waited(broker, WAIT_S - 0.1)) == []
    assert kinds(waited(broker, WAIT_S)) == [Forget]
    assert kinds(arrives(broker, a_message(), WAIT_S + 1.0)) == [Send]


def test_what_was_kept_survives_another_restart() -> None:
    said = a_message()
    stored = [e.parcel for e in arrives(restarted(), said, 1.0) if isinstance(e, Store)]
    broker = restarted(stored, at=2.0, incarnation=3)
    broker.subscribe(a_subscription("b", "c"), 3.0)
    assert kinds(waited(broker, 4.0)) == [Deliver, Forget]


def test_a_copy_that_comes_again_is_stored_once() -> None:
    said = a_message()
    stored = [e.parcel for e in arrives(restarted(), said, 1.0) if isinstance(e, Store)]
    broker = restarted(stored, at=2.0, incarnation=3)
    assert kinds(arrives(broker, said, 2.5)) == [Send], "its acknowledgement was lost"
    broker.subscribe(a_subscription("b", "c"), 3.0)
    assert kinds(waited(broker, 4.0)) == [Deliver, Forget]


@pytest.mark.parametrize("durable", [True, False])
def test_a_broker_in_its_first_life_or_a_message_that_is_not_durable_waits_for_nobody(
    durable: bool,
) -> None:
    broker = Broker("b", Settings(), {"a": None}) if durable else restarted()
    broker.link_up("a", 0.0)
    said, owed = a_message(), a_destination("b", (1.0, 1))
    parcel = replace(a_parcel(owed, path=("a",), message=said), durable=durable)
    effects = broker.receive("a", Data(1, parcel.on_the_wire(1.0)), 1.0)
    assert kinds(effects) == [Send]


def test_a_broker_without_neighbours_keeps_nothing_that_is_published_there() -> None:
    broker = Broker("b", Settings(), {}, 2)
    broker.restore((), 0.0)
    assert kinds(broker.publish(a_message(durable=True), 1.0)) == []


def test_what_is_published_before_a_neighbour_is_linked_is_kept_until_it_had_time_to_tell() -> None:
    broker = Broker("b", Settings(), {"a": None}, 2)
    broker.restore((), 0.0)
    assert kinds(broker.publish(a_message(durable=True), 1.0)) == [Store]
    assert kinds(waited(broker, 1_000.0)) == []
    broker.link_up("a", 1_000.0)
    assert kinds(broker.publish(a_message(durable=True), 1_001.0)) == [Store]
    assert Forget not in kinds(waited(broker, 1_000.0 + WAIT_S - 0.1))
    assert kinds(waited(broker, 1_000.0 + WAIT_S)).count(Forget) == 2
    assert kinds(broker.publish(a_message(durable=True), 1_001.0 + WAIT_S)) == []


def test_what_is_published_after_another_broker_has_restarted_waits_for_its_clients() -> None:
    wish = a_subscription("b2")
    broker = a_broker("b1", wishes=[wish], late_takers_s=WAIT_S)
    acknowledge(broker, broker.publish(a_message(durable=True), START + 1.0), START + 1.01)
    broker.receive("b2", some_interests(origin="b2", incarnation=2), START + 3.0)
    said = a_message(durable=True)
    assert not sends(broker.publish(said, START + 4.0))
    back = some_interests(wish, base=1, version=2, incarnation=2)
    broker.receive("b2", back, START + 5.0)
    given = {data.envelope.message.id for _, data in sends(waited(broker, START + 5.5))}
    assert given == {said.id}


def test_what_is_not_durable_waits_for_nobody_s_return() -> None:
    broker = Broker("b", Settings(late_takers_s=WAIT_S), {"a": None})
    broker.link_up("a", 0.0)
    broker.receive("a", some_interests(a_subscription("a", "c")), 1.0)
    broker.receive("a", some_interests(origin="a", incarnation=2), 3.0)
    assert kinds(broker.publish(a_message(), 4.0)) == []
    assert not list(broker.holding())


def test_who_was_given_what_is_published_here_is_not_given_it_again_after_a_restart() -> None:
    def life(incarnation: int, stored: Iterable[Parcel]) -> Broker:
        known = {neighbour: LinkEstimate(0.010) for neighbour in ("b2", "b3")}
        broker = Broker("b1", pinned(late_takers_s=WAIT_S), known, incarnation)
        broker.restore(stored, START)
        for neighbour in known:
            broker.link_up(neighbour, START)
            broker.link_ready(neighbour, inf, START)
        return broker

    first, second = some_interests(a_subscription("b2")), some_interests(a_subscription("b3"))
    broker = life(2, ())
    broker.receive("b2", first, START + 0.5)
    effects = broker.publish(a_message(durable=True), START + 1.0)
    stored = [effect.parcel for effect in effects if isinstance(effect, Store)]
    held = [parcel for parcel in stored if parcel.destinations[0].broker == "b1"]
    broker = life(3, held)
    broker.receive("b2", first, START + 3.0)
    broker.receive("b3", second, START + 3.0)
    owed = {
        destination.broker
        for _, data in sends(waited(broker, START + 3.5))
        for destination in data.envelope.destinations
    }
    assert owed == {"b3"}
