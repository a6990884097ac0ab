"""An envelope in a broker's hands, and the verbs that bring it there and on its way again.

What happens to a message is a verb that gives a new value.

    set_out(message)      Parcel     published, and owed to other brokers
    parcel.only_for       Parcel     the part of it that takes one hop
    parcel.on_the_wire    Envelope   put on a link
    received(envelope)    Parcel     taken from a link by the next broker
    parcel.given_up_on    Parcel     a neighbour could not be reached
    parcel.afresh         Parcel     to start again from here, after a pause
    parcel.stored         Envelope   written down; `restored(envelope)` undoes it
"""

from __future__ import annotations

from math import inf
from typing import final

from tidings.core.contract import Destination
from tidings.core.message import HEADER_BYTES, Budget, Envelope, Message
from tidings.core.values import Value, changed

MOST_RESTARTS = 1 << 30  # counted; a neighbour may claim any number


@final
class Parcel(Value, frozen=True):
    """An envelope in a broker's hands: its age has become an instant of birth on that broker's own
    clock, so it grows older without being touched."""

    message: Message
    born_at: float
    expires_at: float  # after this instant nobody takes it; inf: late is welcome somewhere
    destinations: tuple[Destination, ...]
    path: tuple[str, ...]  # brokers that have held it, the one that holds it now the last
    strategy: str
    size_bytes: int
    given_up: tuple[tuple[str, str], ...] = ()
    plan: tuple[tuple[str, ...], ...] = ()
    durable: bool = False
    restarts: int = 0
    budgets: tuple[Budget, ...] = ()
    doubtful: bool = False

    def on_the_wire(self, now: float) -> Envelope:
        """As it goes on a link: its birth has become an age again."""
        return Envelope(
            self.message,
            now - self.born_at,
            self.destinations,
            self.path,
            self.strategy,
            self.given_up,
            self.plan,
            self.durable,
            self.restarts,
            self.budgets,
            self.doubtful,
        )

    def only_for(
        self,
        destinations: tuple[Destination, ...],
        plan: tuple[tuple[str, ...], ...] = (),
        budgets: tuple[Budget, ...] = (),
    ) -> Parcel:
        """The part that is owed to some of the destinations; along a new plan, if there is one."""
        return Parcel(
            self.message,
            self.born_at,
            expiry(self.born_at, destinations),
            destinations,
            self.path,
            self.strategy,
            self.size_bytes,
            self.given_up,
            plan or self.plan,
            self.durable,
            self.restarts,
            budgets if plan else self.budgets,
            self.doubtful,
        )

    def given_up_on(self, broker: str, neighbour: str) -> Parcel:
        """After `broker` could not reach a neighbour with it."""
        return changed(self, given_up=(*self.given_up, (broker, neighbour)))

    def afresh(self, broker: str, destinations: tuple[Destination, ...]) -> Parcel:
        """To start again from `broker`, as if nobody had held it and nothing had been tried."""
        return Parcel(
            self.message,
            self.born_at,
            expiry(self.born_at, destinations),
            destinations,
            (broker,),
            self.strategy,
            self.size_bytes,
            durable=self.durable,
            restarts=min(self.restarts + 1, MOST_RESTARTS),
            doubtful=self.doubtful or bool(self.given_up),
        )

    def stored(self, age_s: float, destinations: tuple[Destination, ...]) -> Envelope:
        """What a store keeps of it, for some of its destinations."""
        return Envelope(self.message, age_s, destinations, self.path, self.strategy, durable=True)


def set_out(
    message: Message,
    broker: str,
    destinations: tuple[Destination, ...],
    strategy: str,
    durable: bool,
    now: float,
) -> Parcel:
    """A message that was just published at `broker`, and is owed to others."""
    # `message.frame_bytes`, mostly without the call.
    size_bytes = HEADER_BYTES + len(message.topic) + len(message.payload)
    if message.properties or message.headers:
        size_bytes = message.frame_bytes
    return Parcel(
        message,
        now,
        expiry(now, destinations),
        destinations,
        (broker,),
        strategy,
        size_bytes,
        durable=durable,
    )


def received(
    envelope: Envelope,
    broker: str,
    destinations: tuple[Destination, ...],
    born_at: float,
    size_bytes: int,
) -> Parcel:
    """In the hands of a broker, which is to send it on to these destinations."""
    return Parcel(
        envelope.message,
        born_at,
        expiry(born_at, destinations),
        destinations,
        (*envelope.path, broker),
        envelope.strategy,
        size_bytes,
        envelope.given_up,
        envelope.plan,
        envelope.durable,
        envelope.restarts,
        envelope.budgets,
        envelope.doubtful,
    )


def restored(envelope: Envelope, destinations: tuple[Destination, ...], born_at: float) -> Parcel:
    """In the hands of the broker that had stored it."""
    message, expires_at = envelope.message, expiry(born_at, destinations)
    return Parcel(
        message,
        born_at,
        expires_at,
        destinations,
        envelope.path,
        envelope.strategy,
        message.frame_bytes,
        durable=True,
    )


def expiry(born_at: float, destinations: tuple[Destination, ...]) -> float:
    """The instant after which no destination takes the message."""
    latest_s = 0.0
    for destination in destinations:
        if destination.expires_s > latest_s:
            latest_s = destination.expires_s
            if latest_s == inf:
                return inf
    return born_at + latest_s
