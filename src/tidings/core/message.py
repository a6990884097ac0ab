"""A message, which never changes, and the envelope, which carries the story of its travel.

Deadlines travel as age, not as clock times: an envelope says how old its message is, each hop adds
its residence time and the link's one-way delay, and no two brokers need the same clock.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from math import inf
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tidings.core.contract import BEST_EFFORT, Amount, Contract, Destination

SERIAL_BITS = 32
_SERIALS = 1 << SERIAL_BITS

# What comes over the wire must fit into a column of the trace.
Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Message(Struct, frozen=True, array_like=True, gc=False):
    """What a publisher said, once and for all."""

    id: Whole
    topic: str
    payload: bytes
    contract: Contract = BEST_EFFORT
    properties: tuple[tuple[str, str], ...] = ()  # MQTT 5 user properties, in their order
    headers: bytes = b""  # other MQTT 5 properties, passed through unread


class Budget(Struct, frozen=True, array_like=True, gc=False):
    """What each link on a planned path may take beyond what is expected of it, before the message's
    deadline is in danger (Harmony, section 2.2)."""

    destination: str  # where the path ends
    share_s: Amount  # the margin's part of each link
    expected_s: tuple[Amount, ...]  # of each link, when the margin was divided


class Envelope(Struct, frozen=True, array_like=True, gc=False):
    """A message on its way: the part that changes at each hop."""

    message: Message
    age_s: Annotated[float, Meta(ge=0, le=1e9)]  # when it was put on the link
    destinations: tuple[Destination, ...]  # still owed, by this copy
    path: tuple[str, ...]  # brokers that have held it, the publisher's first
    strategy: str
    given_up: tuple[tuple[str, str], ...] = ()  # (broker, neighbour that it could not reach)
    plan: tuple[tuple[str, ...], ...] = ()  # whole paths, of strategies that choose at the source
    durable: bool = False  # whoever holds it writes it down before saying so
    rounds: Whole = 0  # how often it has set out afresh, after a pause without a way
    budgets: tuple[Budget, ...] = ()  # of planned paths, where there is a deadline to keep


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
    rounds: int = 0
    budgets: tuple[Budget, ...] = ()


def expiry(born_at: float, destinations: tuple[Destination, ...]) -> float:
    """The instant after which no destination takes the message."""
    latest_s = 0.0
    for destination in destinations:
        if destination.expires_s > latest_s:
            latest_s = destination.expires_s
            if latest_s == inf:
                return inf
    return born_at + latest_s


def first_id(broker: str, incarnation: int, block: int = 0) -> int:
    """The first of a block of 2^32 message ids that no other broker or incarnation uses.

    The upper 31 bits are a hash: among a thousand brokers alive at once two share a block with a
    probability of 1 in 4,000, and then only messages of equal serial could be mistaken.
    """
    digest = blake2b(f"{broker}\x1f{incarnation}\x1f{block}".encode(), digest_size=4).digest()
    return (int.from_bytes(digest, "big") >> 1) << SERIAL_BITS


class MessageIds:
    """The ids one broker gives out: a serial number in a block of its own."""

    def __init__(self, broker: str, incarnation: int) -> None:
        self._broker, self._incarnation, self._block = broker, incarnation, 0
        self._next = first_id(broker, incarnation)
        self._end = self._next + _SERIALS

    def take(self) -> int:
        taken = self._next
        self._next = taken + 1
        if self._next == self._end:
            self._block += 1
            self._next = first_id(self._broker, self._incarnation, self._block)
            self._end = self._next + _SERIALS
        return taken


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
