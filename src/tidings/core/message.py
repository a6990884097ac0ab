"""A message, which never changes, and the envelope, which carries the story of its travel.

Time
----
Deadlines travel as age, not as clock times. An envelope says how old its message is, each hop adds
its residence time and the link's one-way delay, and no two brokers need the same clock.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tidings.core.contract import BEST_EFFORT, Contract, Destination
from tidings.core.predicate import MAX_LENGTH
from tidings.core.ranges import Finite, NotNegative, Whole

# Nominal: length, tag, transmission, age and list heads; equal in both worlds.
HEADER_BYTES: Final = 32
NOMINAL_PROPERTIES_BYTES = 128  # which the header covers, too: a contract, or a few attributes
PAIR_BYTES = 4  # the lengths of a name and of a value


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

    def older(self, more_s: float) -> Envelope:
        """The same, with more age."""
        return replace(self, age_s=self.age_s + more_s)


def properties_bytes(properties: tuple[tuple[str, str], ...]) -> int:
    """What user properties take on the wire, about."""
    return sum([PAIR_BYTES + len(name) + len(value) for name, value in properties])


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


def attributes_text(message: Message) -> str:
    """These attributes as JSON, for a trace row: all that can decide a predicate. Empty if there
    are none."""
    if not message.properties and message.payload[:1] != b"{":
        return ""
    found = {name: _told(value) for name, value in attributes(message).items() if _is_plain(value)}
    return msgspec.json.encode(found).decode() if found else ""


def attributes_of(text: str) -> dict[str, Any]:
    """What `attributes_text` has written down."""
    found: dict[str, Any] = msgspec.json.decode(text) if text else {}
    return found


def _is_plain(value: object) -> bool:
    """Predicates compare texts, numbers and truth values, and nothing else."""
    return isinstance(value, str | int | float)


def _told(value: object) -> object:
    """A text that is longer than any predicate compares with it as its beginning does."""
    return value[: MAX_LENGTH + 1] if isinstance(value, str) else value
