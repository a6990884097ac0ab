"""What can a client and a server say to each other?

One frozen value per MQTT control packet, the same for both versions: fields that only MQTT 5 has
(properties, reason codes) keep their defaults in 3.1.1. None can be part of a reference cycle, so
the garbage collector need not walk them (`gc=False`) when a read brings thousands.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tidings.core.message import properties_bytes
from tidings.mqtt.properties import NO_PROPERTIES, Properties

MQTT_3_1_1 = 4  # the protocol level byte of CONNECT
MQTT_5 = 5


class Publish(Struct, frozen=True, gc=False):
    """A message, from or to a client; also a will, which is a message sent in advance."""

    topic: str
    payload: bytes
    properties: Properties = NO_PROPERTIES
    qos: int = 0
    retain: bool = False
    repeated: bool = False  # MQTT's DUP flag
    packet_id: int = 0  # 0 with QoS 0, which needs none

    @property
    def size_bytes(self) -> int:
        """What it takes, about, while it is kept."""
        texts_bytes = properties_bytes(self.properties.user_properties)
        return len(self.topic) + len(self.payload) + texts_bytes


class Connect(Struct, frozen=True, gc=False):
    """A client's first packet. Of a version we do not speak only `version` is known."""

    version: int
    client_id: str = ""  # empty: the server chooses one
    clean_start: bool = True
    keep_alive_s: int = 0  # 0: the client may be silent for ever
    username: str | None = None
    password: bytes | None = None
    will: Publish | None = None
    properties: Properties = NO_PROPERTIES


class Connack(Struct, frozen=True, gc=False):
    code: int = 0
    session_present: bool = False
    properties: Properties = NO_PROPERTIES


class TopicFilter(Struct, frozen=True, gc=False):
    """One entry of a SUBSCRIBE. Whether its filter is valid is checked when it is granted."""

    topic: str
    qos: int = 0
    no_local: bool = False  # not the messages this client published itself
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(Struct, frozen=True, gc=False):
    packet_id: int
    filters: tuple[TopicFilter, ...]
    properties: Properties = NO_PROPERTIES


class Suback(Struct, frozen=True, gc=False):
    packet_id: int
    codes: tuple[int, ...]  # one for each filter, in their order
    properties: Properties = NO_PROPERTIES


class Unsubscribe(Struct, frozen=True, gc=False):
    packet_id: int
    topics: tuple[str, ...]
    properties: Properties = NO_PROPERTIES


class Unsuback(Struct, frozen=True, gc=False):
    packet_id: int
    codes: tuple[int, ...] = ()  # MQTT 3.1.1 has none
    properties: Properties = NO_PROPERTIES


class Puback(Struct, frozen=True, gc=False):
    packet_id: int
    code: int = 0
    properties: Properties = NO_PROPERTIES


class Pubrec(Puback, frozen=True, gc=False):
    pass


class Pubrel(Puback, frozen=True, gc=False):
    pass


class Pubcomp(Puback, frozen=True, gc=False):
    pass


class Pingreq(Struct, frozen=True, gc=False):
    pass


class Pingresp(Struct, frozen=True, gc=False):
    pass


class Disconnect(Struct, frozen=True, gc=False):
    code: int = 0
    properties: Properties = NO_PROPERTIES


class Auth(Struct, frozen=True, gc=False):
    """MQTT 5's extended authentication, recognised so that it can be refused by name."""

    code: int = 0
    properties: Properties = NO_PROPERTIES


Packet: TypeAlias = (
    Connect
    | Connack
    | Publish
    | Puback
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Pingreq
    | Pingresp
    | Disconnect
    | Auth
)
