"""The rows a broker leaves about messages and wishes, made from what it has at hand."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.broker.effects import Effect, Forget, Record
from tidings.broker.sending.retransmission import Pending
from tidings.core.contract import Destination, Subscription
from tidings.core.message import Message, attributes_text
from tidings.core.parcel import Parcel
from tidings.core.trace import Acknowledged, Dropped, Forwarded, Published, Subscribed


def subscribed(broker: str, wish: Subscription, active: bool, now: float) -> Record:
    contract = wish.contract
    deadline_s, price = contract.deadline_s, contract.price
    return Record(
        Subscribed(now, broker, wish.id, wish.topic, wish.where, deadline_s, price, active)
    )


def published(broker: str, message: Message, strategy: str, now: float) -> Record:
    contract, size_bytes = message.contract, len(message.payload)
    return Record(
        Published(
            now,
            broker,
            message.id,
            message.topic,
            size_bytes,
            contract.deadline_s,
            contract.price,
            strategy,
            attributes_text(message),
        )
    )


def let_go(
    broker: str,
    parcel: Parcel,
    reason: str,
    owed: Iterable[Destination],
    now: float,
    effects: list[Effect],
) -> None:
    """A copy is given up for good, as far as it was owed to these destinations."""
    brokers, message = tuple(destination.broker for destination in owed), parcel.message.id
    effects.append(Record(Dropped(now, broker, message, reason, brokers)))
    if parcel.durable:
        effects.append(Forget(message, brokers))


def forwarded(broker: str, pending: Pending, parcel: Parcel, now: float) -> Record:
    transmission, count = pending.frame.transmission, len(parcel.destinations)
    return Record(
        Forwarded(
            now,
            broker,
            parcel.message.id,
            pending.neighbour,
            transmission,
            pending.attempt,
            count,
            pending.size_bytes,
        )
    )


def acknowledged(broker: str, pending: Pending, now: float) -> Record:
    transmission, round_trip_s = pending.frame.transmission, now - pending.sent_at
    return Record(Acknowledged(now, broker, pending.neighbour, transmission, round_trip_s))
