"""A message, which never changes, and the envelope, which carries the story of its travel.

Time
----
Deadlines travel as age, not as clock times. An envelope says how old its message is, each hop adds
its residence time and the link's one-way delay, and no two brokers need the same clock.

Travel
------
What happens to a message is a verb that gives a new value.

    set_out(message)      Parcel     published, and owed to other brokers
    parcel.only_for       Parcel     the part of it that takes one hop
    parcel.on_the_wire    Envelope   put on a link
    envelope.received     Parcel     taken from a link by the next broker
    parcel.given_up_on    Parcel     a neighbour could not be reached
    parcel.afresh         Parcel     to start again from here, after a pause
    parcel.stored         Envelope   written down; `envelope.restored` undoes it
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tidings.core.contract import BEST_EFFORT, Contract, Destination
from tidings.core.ranges import Finite, NotNegative, Whole

HEADER_BYTES = 32  # nominal: length, tag, transmission, age and list heads; equal in both worlds
NOMINAL_PROPERTIES_BYTES = 128  # which the header covers, too: a contract, or a few attributes
PAIR_BYTES = 4  # the lengths of a name and of a value
MOST_RESTARTS = 1 << 30  # counted; a neighbour may claim any number


class Message(Struct, frozen=True, array_like=True, gc=False):
    """What a publisher said, once and for all."""

    id: Whole
    topic: str
    payload: bytes
    contract: Contract = BEST_EFFORT
    properties: tuple[tuple[str, str], ...] = ()  # MQTT 5 user properties, in their order
    headers: bytes = b""  # other MQTT 5 properties, passed through unread

    @property
    def frame_bytes(self) -> int:
        """Nominal size of a frame that carries it. Long properties count as a payload does: they
        fill queues and links as well."""
        size_bytes = HEADER_BYTES + len(self.topic) + len(self.payload)
        if self.properties or self.headers:
            stated_bytes = properties_bytes(self.properties) + len(self.headers)
            size_bytes += max(0, stated_bytes - NOMINAL_PROPERTIES_BYTES)
        return size_bytes


class Budget(Struct, frozen=True, array_like=True, gc=False):
    """What each link on a planned path may take beyond what is expected of it, before the message's
    deadline is in danger (Harmony, section 2.2)."""

    destination: str  # where the path ends
    share_s: NotNegative  # the margin's part of each link
    expected_s: tuple[NotNegative, ...]  # of each link, when the margin was divided


class Envelope(Struct, frozen=True, array_like=True, gc=False):
    """A message on its way: the part that changes at each hop."""

    message: Message
    age_s: Finite  # when it was put on the link
    destinations: tuple[Destination, ...]  # still owed, by this copy
    path: tuple[str, ...]  # brokers that have held it, the publisher's first
    strategy: str
    given_up: tuple[tuple[str, str], ...] = ()  # (broker, neighbour that it could not reach)
    plan: tuple[tuple[str, ...], ...] = ()  # whole paths, of strategies that choose at the source
    durable: bool = False  # whoever holds it writes it down before acknowledging it
    restarts: Whole = 0  # how often it has started afresh, after a pause without a path
    budgets: tuple[Budget, ...] = ()  # of planned paths, where there is a deadline to keep
    doubtful: bool = False  # it has waited after a copy of it left, which may have arrived

    def received(
        self, broker: str, destinations: tuple[Destination, ...], born_at: float, size_bytes: int
    ) -> Parcel:
        """In the hands of a broker, which is to send it on to these destinations."""
        return Parcel(
            self.message,
            born_at,
            expiry(born_at, destinations),
            destinations,
            (*self.path, broker),
            self.strategy,
            size_bytes,
            self.given_up,
            self.plan,
            self.durable,
            self.restarts,
            self.budgets,
            self.doubtful,
        )

    def restored(self, destinations: tuple[Destination, ...], born_at: float) -> Parcel:
        """In the hands of the broker that had stored it."""
        message, expires_at = self.message, expiry(born_at, destinations)
        return Parcel(
            message,
            born_at,
            expires_at,
            destinations,
            self.path,
            self.strategy,
            message.frame_bytes,
            durable=True,
        )

    def older(self, more_s: float) -> Envelope:
        """The same, with more age."""
        return replace(self, age_s=self.age_s + more_s)


class Parcel(Struct, frozen=True, gc=False):
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
        return replace(self, given_up=(*self.given_up, (broker, neighbour)))

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


def properties_bytes(properties: tuple[tuple[str, str], ...]) -> int:
    """What user properties take on the wire, about."""
    return sum([PAIR_BYTES + len(name) + len(value) for name, value in properties])


def set_out(
    message: Message,
    broker: str,
    destinations: tuple[Destination, ...],
    strategy: str,
    durable: bool,
    now: float,
) -> Parcel:
    """A message that was just published at `broker`, and is owed to others."""
    return Parcel(
        message,
        now,
        expiry(now, destinations),
        destinations,
        (broker,),
        strategy,
        message.frame_bytes,
        durable=durable,
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


def attributes(message: Message) -> dict[str, Any]:
    """What a `where` predicate sees: the top-level fields of a JSON payload, and over them the
    user properties, which the publisher stated with more care."""
    found: dict[str, Any] = {}
    if message.payload[:1] == b"{":
        # What is not JSON after all, or nested too deep, is the publisher's own business.
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found.update(msgspec.json.decode(message.payload))
    found.update(message.properties)
    return found
