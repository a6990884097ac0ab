"""Trace rows: what happened, in the past tense, the same from both worlds.

Every number that Tidings reports is computed from these rows. At level `outcomes` a run leaves who
subscribed, what was published, delivered and dropped, and how much each link carried per minute; at
level `hops` also one row per transmission, acknowledgement and probe. The schemas of Arrow and
Spark are derived from the rows' annotations, so no name here is a word that SQL reserves.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

SCHEMA_VERSION = 4

Level = Literal["outcomes", "hops"]


class Row(Struct, frozen=True, array_like=True, gc=False):
    """What every row says: when, by the recording broker's clock, and where."""

    recorded_at: float
    broker: str


class Subscribed(Row, frozen=True, array_like=True, gc=False):
    subscription: str
    topic: str
    predicate: str  # empty: every message
    deadline_s: float
    price: float
    active: bool  # False: the subscription ended here


class Published(Row, frozen=True, array_like=True, gc=False):
    """A message; who should get it follows from `Subscribed` rows (`traces.audience`)."""

    message: int
    topic: str
    size_bytes: int
    deadline_s: float
    price: float
    strategy: str
    attributes: str  # what predicates may ask, see `message.attributes_text`; empty: nothing


class Slowed(Row, frozen=True, array_like=True, gc=False):
    """A publisher was not listened to for a while that ended then, because queues were long."""

    publisher: str  # the client's name; in the simulator its topic
    waited_s: float


class Delivered(Row, frozen=True, array_like=True, gc=False):
    """One message handed to all interested clients of one broker."""

    message: int
    age_s: float  # as the envelope tells it, which needs no common clock
    hops: int
    subscriptions: tuple[str, ...]


class Dropped(Row, frozen=True, array_like=True, gc=False):
    """A copy given up, for the sake of these destinations; another copy may still arrive."""

    message: int
    reason: str
    destinations: tuple[str, ...]


# What a link carries, as it is counted; discarded: repeats that came in.
CARRIED_KINDS = ("data", "repeat", "ack", "probe", "control", "gossip", "discarded")


class Carried(Row, frozen=True, array_like=True, gc=False):
    """What a broker put on one link in the minute that ended at `recorded_at`."""

    neighbour: str
    kind: str  # one of `CARRIED_KINDS`
    frames: int
    size_bytes: int
    header_bytes: int  # of these, what was no payload; counted for data and repeats only


class Forwarded(Row, frozen=True, array_like=True, gc=False):
    message: int
    neighbour: str
    transmission: int
    attempt: int
    destinations: int
    size_bytes: int


class Acknowledged(Row, frozen=True, array_like=True, gc=False):
    neighbour: str
    transmission: int
    round_trip_s: float


class Probed(Row, frozen=True, array_like=True, gc=False):
    neighbour: str
    round_trip_s: float  # NaN: no answer in time


class LinkChanged(Row, frozen=True, array_like=True, gc=False):
    neighbour: str
    up: bool


class Reason:
    """Why a copy was dropped; each is a counter somebody will look at."""

    EXPIRED = "expired"  # nobody takes it this late
    UNLIKELY = "unlikely"  # it has next to no chance to be in time anywhere
    NO_ROUTE = "no-route"  # the strategy knows no way from here
    QUEUE_FULL = "queue-full"
    EXHAUSTED = "exhausted"  # every way was tried
    UNACKNOWLEDGED = "unacknowledged"  # lost on a link, as far as the sender can tell
    LINK_DOWN = "link-down"  # it waited for a link that went away
    UNKNOWN_STRATEGY = "unknown-strategy"
    UNWANTED = "unwanted"  # its takers have left while it was on its way
    BROKER_FAILED = "broker-failed"  # it was in the hands of a broker that died


TABLES: dict[str, type[Row]] = {
    "subscribed": Subscribed,
    "published": Published,
    "slowed": Slowed,
    "delivered": Delivered,
    "dropped": Dropped,
    "carried": Carried,
    "forwarded": Forwarded,
    "acknowledged": Acknowledged,
    "probed": Probed,
    "link_changed": LinkChanged,
}

# What tells runs apart; constant within a file, so it costs a reader nothing.
ORIGIN_COLUMNS = ("run", "world")
