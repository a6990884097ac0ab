"""What two brokers say to each other over one link.

`Data`, `Interests`, `Links`, `Pull` and `Gossip` carry a transmission id and are acknowledged and
repeated under the same id; `Ack`, `Probe` and `Echo` are not: they answer or are asked again. Each
frame is a tagged array in MessagePack, so a frame of an unknown kind is a clear error, not a guess.
The kinds are final, so that a broker may ask `type(frame) is Data`, and mypy still tells one that
forgot a kind.
"""

from __future__ import annotations

from typing import Annotated, Final, final

from msgspec import Meta, Struct

from tidings.core.contract import Wish
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message import HEADER_BYTES, Envelope
from tidings.core.ranges import Finite, Whole

CONTROL_BYTES: Final = 64  # nominal size of a frame that carries neither a message nor gossip
# What frames mean. The second tells interests by their numbers; the first told subscriptions.
PROTOCOL: Final = 2
FIRST_PROTOCOL: Final = 1
ANSWER_BYTES: Final = 8  # nominal size of each answer in an acknowledgement, beside the first
MAX_PARTS = 65_536  # of one update; what a peer may make us wait for has an end
# Others than the first: with it they are as many as a broker takes up at once.
MOST_IN_BUNDLE: Final = 63


@final
class Hello(Struct, frozen=True, array_like=True, tag="H", gc=False):
    """First on a connection, between the two worlds' plumbing: who speaks, and how. Brokers never
    see it. One with a refusal may follow: why the speaker ends a connection that has begun."""

    broker: str
    protocol: Whole = FIRST_PROTOCOL  # brokers that do not say it speak the first
    refusal: str = ""


@final
class Data(Struct, frozen=True, array_like=True, tag="D", gc=False):
    transmission: Whole
    envelope: Envelope


@final
class Bundle(Struct, frozen=True, array_like=True, tag="B", gc=False):
    """Messages that are alike, between the two worlds' plumbing (`broker.bundles`): the first is
    whole, of each of the others it is told what differs. Brokers never see it."""

    first: Data
    transmissions: Annotated[tuple[Whole, ...], Meta(max_length=MOST_IN_BUNDLE)]
    ages_s: tuple[Finite, ...]
    message_ids: tuple[Whole, ...]
    payloads: tuple[bytes, ...]


@final
class Ack(Struct, frozen=True, array_like=True, tag="A", gc=False):
    """Answers all that came in together."""

    transmissions: tuple[Whole, ...]


@final
class Probe(Struct, frozen=True, array_like=True, tag="P", gc=False):
    serial: Whole


@final
class Echo(Struct, frozen=True, array_like=True, tag="E", gc=False):
    serial: Whole


@final
class Interests(Struct, frozen=True, array_like=True, tag="I"):
    """How what is asked for at `origin` changed from version `base` to `version`, with the numbers
    that hold now; a base of 0 is the whole of it."""

    transmission: Whole
    origin: str
    incarnation: Whole
    base: Whole
    version: Whole
    wishes: tuple[Wish, ...]
    part: Whole = 0  # of an update that is too large for one frame
    parts: Annotated[int, Meta(ge=1, le=MAX_PARTS)] = 1


@final
class Links(Struct, frozen=True, array_like=True, tag="L"):
    """All links of `origin` that are up, as it believes them to be."""

    transmission: Whole
    origin: str
    incarnation: Whole
    version: Whole
    links: tuple[tuple[str, LinkEstimate], ...]
    age_s: float = 0.0  # when it was put on the link
    address: str = ""  # where `origin` takes links, as host:port; empty: it does not say


@final
class Pull(Struct, frozen=True, array_like=True, tag="Q", gc=False):
    """A change of `origin`'s interests went missing: please send the whole."""

    transmission: Whole
    origin: str


@final
class Gossip(Struct, frozen=True, array_like=True, tag="G", gc=False):
    """What routers of one strategy tell each other; brokers carry it unread."""

    transmission: Whole
    strategy: str
    news: bytes


Frame = Data | Ack | Probe | Echo | Interests | Links | Pull | Gossip
ControlFrame = Interests | Links | Pull | Gossip  # repeated until it is acknowledged
Reliable = Data | ControlFrame

# How links count what they carry: places in `CARRIED_KINDS`, as hot paths count in lists.
DATA: Final = 0
REPEAT: Final = 1
ACK: Final = 2
PROBE: Final = 3
CONTROL: Final = 4
GOSSIP: Final = 5
DISCARDED: Final = 6
# What a frame counts as. Data that is sent again is a repeat, and whatever comes in again is
# counted as discarded.
COUNTED_AS: dict[type[Frame], int] = {
    Data: DATA,
    Ack: ACK,
    Probe: PROBE,
    Echo: PROBE,
    Interests: CONTROL,
    Links: CONTROL,
    Pull: CONTROL,
    Gossip: GOSSIP,
}


def control_bytes(frame: ControlFrame) -> int:
    """Nominal size."""
    return HEADER_BYTES + len(frame.news) if type(frame) is Gossip else CONTROL_BYTES


def ack_bytes(answers: int) -> int:
    """Nominal size of an acknowledgement."""
    return CONTROL_BYTES + ANSWER_BYTES * (answers - 1)
