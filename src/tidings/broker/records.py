"""The rows a broker leaves about messages and wishes, made from what it has at hand."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.broker.effects import Record
from tidings.broker.retransmission import Pending
from tidings.core.contract import Destination, Subscription
from tidings.core.message import Message, Parcel
from tidings.core.trace import Acknowledged, Dropped, Forwarded, Subscribed


def subscribed(broker: str, wish: Subscription, active: bool, now: float) -> Record:
    contract = wish.contract
    deadline_s, price = contract.deadline_s, contract.price
    return Record(
        Subscribed(now, broker, wish.id, wish.topic, wish.where, deadline_s, price, active)
    )


def dropped(
    broker: str, message: Message, reason: str, owed: Iterable[Destination], now: float
) -> Record:
    """A copy was given up, for the sake of the destinations it was still owed to."""
    brokers = tuple(destination.broker for destination in owed)
    return Record(Dropped(now, broker, message.id, reason, brokers))


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
