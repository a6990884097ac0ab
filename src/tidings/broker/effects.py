"""What a broker wants done. A world carries effects out in the order given, and decides nothing."""

from __future__ import annotations

from msgspec import Struct

from tidings.broker.frames import Frame
from tidings.core.message import Message
from tidings.core.trace import Row


class Send(Struct, frozen=True, gc=False):
    """Put a frame on the link to a neighbour."""

    neighbour: str
    frame: Frame
    size_bytes: int
    attempt: int  # 1 for a first transmission


class Deliver(Struct, frozen=True, gc=False):
    """Hand a message to local clients, once for each of these subscriptions."""

    subscriptions: tuple[str, ...]
    message: Message
    age_s: float


class Record(Struct, frozen=True, gc=False):
    """Write a trace row."""

    row: Row


Effect = Send | Deliver | Record
