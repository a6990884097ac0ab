"""How is a packet written for a client of a given version?

One writer per packet type, in a table: it returns the body, and `encode` puts the first byte and
the remaining length before it. Writing for 3.1.1 leaves out what that version cannot say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidings.mqtt.packet_types import FIXED_FLAGS, PacketType
from tidings.mqtt.packets import (
    MQTT_5,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    TopicFilter,
    Unsuback,
    Unsubscribe,
)
from tidings.mqtt.primitives import (
    encode_binary,
    encode_text,
    encode_two_bytes,
    encode_variable,
)
from tidings.mqtt.properties import NO_PROPERTIES, Properties, encode_properties
from tidings.mqtt.reasons import FIRST_FAILURE, RETURN_CODES

_SUBACK_FAILURE = 0x80  # the one failure of MQTT 3.1.1


def encode(packet: Packet, version: int) -> bytes:
    """The packet as bytes."""
    kind, write = _WRITERS[type(packet)]
    if isinstance(packet, Publish):
        flags = packet.repeated << 3 | packet.qos << 1 | packet.retain
    else:
        flags = FIXED_FLAGS[kind]
    body = write(packet, version)
    return bytes((kind << 4 | flags,)) + encode_variable(len(body)) + body


def _properties(properties: Properties, version: int, carrier: PacketType) -> bytes:
    return encode_properties(properties, carrier) if version == MQTT_5 else b""


def _connect(packet: Connect, version: int) -> bytes:
    will, username, password = packet.will, packet.username, packet.password
    bits = packet.clean_start << 1 | (username is not None) << 7 | (password is not None) << 6
    if will is not None:
        bits |= 0x04 | will.qos << 3 | will.retain << 5
    return b"".join(
        (
            encode_text("MQTT"),
            bytes((packet.version, bits)),
            encode_two_bytes(packet.keep_alive_s),
            _properties(packet.properties, packet.version, PacketType.CONNECT),
            encode_text(packet.client_id),
            _will(will, packet.version) if will is not None else b"",
            encode_text(username) if username is not None else b"",
            encode_binary(password) if password is not None else b"",
        )
    )


def _will(will: Publish, version: int) -> bytes:
    properties = _properties(will.properties, version, PacketType.WILL)
    return properties + encode_text(will.topic) + encode_binary(will.payload)


def _connack(packet: Connack, version: int) -> bytes:
    if version != MQTT_5:
        return bytes((packet.session_present, RETURN_CODES[packet.code]))
    answer = bytes((packet.session_present, packet.code))
    return answer + encode_properties(packet.properties, PacketType.CONNACK)


def _publish(packet: Publish, version: int) -> bytes:
    packet_id = encode_two_bytes(packet.packet_id) if packet.qos else b""
    properties = _properties(packet.properties, version, PacketType.PUBLISH)
    return encode_text(packet.topic) + packet_id + properties + packet.payload


def _acknowledgement(kind: PacketType) -> Callable[[Puback, int], bytes]:
    def write(packet: Puback, version: int) -> bytes:
        ending = _code_and_properties(packet.code, packet.properties, version, kind)
        return encode_two_bytes(packet.packet_id) + ending

    return write


def _code_and_properties(
    code: int, properties: Properties, version: int, kind: PacketType
) -> bytes:
    """MQTT 5 allows leaving out absent properties, and then also the code, if that is 0."""
    if version != MQTT_5 or (code == 0 and properties == NO_PROPERTIES):
        return b""
    if properties == NO_PROPERTIES:
        return bytes((code,))
    return bytes((code,)) + encode_properties(properties, kind)


def _subscribe(packet: Subscribe, version: int) -> bytes:
    properties = _properties(packet.properties, version, PacketType.SUBSCRIBE)
    filters = b"".join(
        encode_text(wanted.topic) + bytes((_options(wanted),)) for wanted in packet.filters
    )
    return encode_two_bytes(packet.packet_id) + properties + filters


def _options(wanted: TopicFilter) -> int:
    flags = wanted.no_local << 2 | wanted.retain_as_published << 3
    return wanted.qos | flags | wanted.retain_handling << 4


def _suback(packet: Suback, version: int) -> bytes:
    properties = _properties(packet.properties, version, PacketType.SUBACK)
    codes = packet.codes
    if version != MQTT_5:
        codes = tuple(code if code < FIRST_FAILURE else _SUBACK_FAILURE for code in codes)
    return encode_two_bytes(packet.packet_id) + properties + bytes(codes)


def _unsubscribe(packet: Unsubscribe, version: int) -> bytes:
    properties = _properties(packet.properties, version, PacketType.UNSUBSCRIBE)
    topics = b"".join(map(encode_text, packet.topics))
    return encode_two_bytes(packet.packet_id) + properties + topics


def _unsuback(packet: Unsuback, version: int) -> bytes:
    if version != MQTT_5:
        return encode_two_bytes(packet.packet_id)
    properties = encode_properties(packet.properties, PacketType.UNSUBACK)
    return encode_two_bytes(packet.packet_id) + properties + bytes(packet.codes)


def _disconnect(packet: Disconnect, version: int) -> bytes:
    return _code_and_properties(packet.code, packet.properties, version, PacketType.DISCONNECT)


def _auth(packet: Auth, version: int) -> bytes:
    return _code_and_properties(packet.code, packet.properties, version, PacketType.AUTH)


def _nothing(packet: Pingreq | Pingresp, version: int) -> bytes:
    return b""


_WRITERS: dict[type, tuple[PacketType, Callable[[Any, int], bytes]]] = {
    # packet → its type, the writer of its body
    Connect: (PacketType.CONNECT, _connect),
    Connack: (PacketType.CONNACK, _connack),
    Publish: (PacketType.PUBLISH, _publish),
    Puback: (PacketType.PUBACK, _acknowledgement(PacketType.PUBACK)),
    Pubrec: (PacketType.PUBREC, _acknowledgement(PacketType.PUBREC)),
    Pubrel: (PacketType.PUBREL, _acknowledgement(PacketType.PUBREL)),
    Pubcomp: (PacketType.PUBCOMP, _acknowledgement(PacketType.PUBCOMP)),
    Subscribe: (PacketType.SUBSCRIBE, _subscribe),
    Suback: (PacketType.SUBACK, _suback),
    Unsubscribe: (PacketType.UNSUBSCRIBE, _unsubscribe),
    Unsuback: (PacketType.UNSUBACK, _unsuback),
    Pingreq: (PacketType.PINGREQ, _nothing),
    Pingresp: (PacketType.PINGRESP, _nothing),
    Disconnect: (PacketType.DISCONNECT, _disconnect),
    Auth: (PacketType.AUTH, _auth),
}
