"""What did a run come to? In a few numbers; everything else is in its trace rows."""

from __future__ import annotations

from msgspec import Struct


class Result(Struct, frozen=True):
    """Of one simulation."""

    digest: str  # of all trace rows
    publications: int
    unpublished: int  # the publisher's broker was down
    deliveries: int
    hops: int  # data transmissions
    events: int
    warnings: tuple[str, ...] = ()  # what brokers had to say to a person, each once
