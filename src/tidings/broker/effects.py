"""What a broker wants done. A world carries effects out in the order given, and decides nothing.

The kinds are final, so that a world may ask `type(effect) is Send`, which costs half of what a
`match` does, and mypy still tells a world that forgot one.
"""

from __future__ import annotations

from typing import final

from tidings.broker.frames import Frame
from tidings.core.message import Message
from tidings.core.parcel import Parcel
from tidings.core.trace import Row
from tidings.core.values import Value


@final
class Send(Value, frozen=True):
    """Put a frame on the link to a neighbour."""

    neighbour: str
    frame: Frame
    size_bytes: int
    attempt: int  # 1 for a first transmission


@final
class Deliver(Value, frozen=True):
    """Hand a message to local clients, once for each of these subscriptions."""

    subscriptions: tuple[str, ...]
    message: Message
    age_s: float


@final
class Record(Value, frozen=True):
    """Write a trace row."""

    row: Row


@final
class Store(Value, frozen=True):
    """Write a parcel down, so that it outlives this broker, before any effect that follows."""

    parcel: Parcel


@final
class Forget(Value, frozen=True):
    """Strike out what was stored of a message for these destinations: others answer for it now."""

    message: int
    destinations: tuple[str, ...]


@final
class Open(Value, frozen=True):
    """Make a link to a broker: `link_up` says that it is there, `link_refused` that it cannot be.
    The address is the one that broker tells of itself; empty: the world knows it."""

    neighbour: str
    address: str


@final
class Close(Value, frozen=True):
    """End a link; `link_down` says that it is gone."""

    neighbour: str


@final
class Warn(Value, frozen=True):
    """Tell whoever runs this broker. What it is about stands before the first colon, and may come
    again."""

    text: str


Effect = Send | Deliver | Record | Store | Forget | Open | Close | Warn
