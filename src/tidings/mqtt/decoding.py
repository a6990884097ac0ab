"""What does the body of one packet say?

One parser per packet type, in a table. A parser is given a cursor over the body, the four flag bits
of the first byte and the protocol's version, and returns the packet or raises `WireError` with the
reason code to answer. Only the standard's grammar is checked here. What this server does not offer
(QoS 1, retained messages, ...) is refused by the session.
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.core.errors import WireError
from tidings.mqtt.packet_types import FIXED_FLAGS, PacketType
from tidings.mqtt.packets import (
    MQTT_3_1_1,
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
from tidings.mqtt.primitives import WILDCARDS, Cursor, checked_text, malformed, protocol_error
from tidings.mqtt.properties import NO_PROPERTIES, Properties, decode_properties
from tidings.mqtt.reasons import REASONS_OF_RETURN_CODES, ReasonCode

Parser = Callable[[Cursor, int, int], Packet]

VERSIONS = (MQTT_3_1_1, MQTT_5)
_KNOWN_CODES = frozenset(ReasonCode)


def decode_body(first_byte: int, body: bytes, version: int) -> Packet:
    """The packet whose first byte and body these are."""
    kind, flags = PacketType(first_byte >> 4), first_byte & 0x0F
    if kind not in _PARSERS or (kind is PacketType.AUTH and version != MQTT_5):
        raise malformed(f"the packet type {kind.value} is reserved")
    if flags != FIXED_FLAGS.get(kind, flags):
        raise malformed(f"a {kind.name} has the reserved flag bits {flags:#06b}")
    cursor = Cursor(body)
    packet = _PARSERS[kind](cursor, flags, version)
    cursor.finish(kind.name)
    return packet


def connect_version(body: bytes) -> int:
    """The protocol level that a CONNECT asks for, 0 if it asks for another protocol.

    A Mosquitto bridge first sends its level with the top bit set, and tries again without it when
    that version is refused. The bit is kept here, so that the level is not one we speak.
    """
    return _protocol_level(Cursor(body))


def _protocol_level(cursor: Cursor) -> int:
    name, level = cursor.text(), cursor.byte()
    known = name == "MQTT" or (name == "MQIsdp" and level & 0x7F == 3)  # MQTT 3.1's old name
    return level if known else 0


def topic_name(raw: bytes) -> str:
    """The topic of a message: at least one character, no wildcards."""
    topic = checked_text(raw)
    if not topic:
        raise protocol_error("a message has an empty topic and no topic alias")
    if not WILDCARDS.isdisjoint(topic):
        problem = f"the topic {topic[:100]!r} of a message contains a wildcard (+ or #)"
        raise WireError(problem, ReasonCode.TOPIC_NAME_INVALID)
    return topic


def _properties(cursor: Cursor, version: int, carrier: PacketType) -> Properties:
    return decode_properties(cursor, carrier) if version == MQTT_5 else NO_PROPERTIES


def _connect(cursor: Cursor, flags: int, version: int) -> Connect:
    level = _protocol_level(cursor)
    if level not in VERSIONS:
        cursor.rest()  # the grammar of another version is not known here
        return Connect(level)
    bits = cursor.byte()
    _check_connect_bits(bits, level)
    keep_alive_s = cursor.two_bytes()
    properties = _properties(cursor, level, PacketType.CONNECT)
    client_id = cursor.text()
    will = _will(cursor, bits, level) if bits & 0x04 else None
    username = cursor.text() if bits & 0x80 else None
    password = cursor.binary() if bits & 0x40 else None
    clean_start = bool(bits & 0x02)
    return Connect(
        level, client_id, clean_start, keep_alive_s, username, password, will, properties
    )


def _check_connect_bits(bits: int, level: int) -> None:
    if bits & 0x01:
        raise malformed("the reserved flag of a CONNECT is set")
    if not bits & 0x04 and bits & 0x38:
        raise malformed("a CONNECT without a will has a QoS or retain flag for it")
    if bits & 0x18 == 0x18:
        raise malformed("the QoS of a will is 3")
    if level == MQTT_3_1_1 and bits & 0xC0 == 0x40:
        raise malformed("a CONNECT has a password but no user name, which MQTT 3.1.1 forbids")


def _will(cursor: Cursor, bits: int, version: int) -> Publish:
    properties = _properties(cursor, version, PacketType.WILL)
    topic, payload = topic_name(cursor.binary()), cursor.binary()
    return Publish(topic, payload, properties, bits >> 3 & 3, bool(bits & 0x20))


def _connack(cursor: Cursor, flags: int, version: int) -> Connack:
    present = cursor.byte()
    if present > 1:
        raise malformed(f"the acknowledge flags of a CONNACK are {present:#04x}")
    if version == MQTT_5:
        return Connack(_code(cursor), present == 1, decode_properties(cursor, PacketType.CONNACK))
    code = cursor.byte()
    if code not in REASONS_OF_RETURN_CODES:
        raise malformed(f"no CONNACK of MQTT 3.1.1 has the return code {code}")
    return Connack(REASONS_OF_RETURN_CODES[code], present == 1)


def _publish(cursor: Cursor, flags: int, version: int) -> Publish:
    qos, repeated = flags >> 1 & 3, flags >= 8
    if qos == 3:
        raise malformed("the QoS of a PUBLISH is 3")
    if repeated and not qos:
        raise malformed("a PUBLISH with QoS 0 is flagged as a repetition")
    raw_topic = cursor.binary()
    packet_id = _packet_id(cursor) if qos else 0
    properties = _properties(cursor, version, PacketType.PUBLISH)
    aliased = not raw_topic and properties.topic_alias is not None
    topic = "" if aliased else topic_name(raw_topic)
    return Publish(topic, cursor.rest(), properties, qos, bool(flags & 1), repeated, packet_id)


def _acknowledgement(kind: PacketType, build: type[Puback]) -> Parser:
    def parse(cursor: Cursor, flags: int, version: int) -> Puback:
        return build(_packet_id(cursor), *_code_and_properties(cursor, version, kind))

    return parse


def _code_and_properties(cursor: Cursor, version: int, kind: PacketType) -> tuple[int, Properties]:
    """MQTT 5 lets a packet end early when the code is success, or when there are no properties."""
    if version != MQTT_5 or not cursor.remaining_bytes:
        return 0, NO_PROPERTIES
    code = _code(cursor)
    return code, decode_properties(cursor, kind) if cursor.remaining_bytes else NO_PROPERTIES


def _code(cursor: Cursor) -> int:
    code = cursor.byte()
    if code not in _KNOWN_CODES:
        raise malformed(f"no reason has the code {code:#04x}")
    return code


def _packet_id(cursor: Cursor) -> int:
    packet_id = cursor.two_bytes()
    if packet_id == 0:
        raise protocol_error("a packet identifier is 0")
    return packet_id


def _subscribe(cursor: Cursor, flags: int, version: int) -> Subscribe:
    packet_id = _packet_id(cursor)
    properties = _properties(cursor, version, PacketType.SUBSCRIBE)
    filters = []
    while cursor.remaining_bytes:
        filters.append(_topic_filter(cursor.text(), cursor.byte(), version))
    if not filters:
        raise protocol_error("a SUBSCRIBE names no topic filter")
    return Subscribe(packet_id, tuple(filters), properties)


def _topic_filter(topic: str, options: int, version: int) -> TopicFilter:
    qos, retain_handling = options & 3, options >> 4 & 3
    if options & (0xC0 if version == MQTT_5 else 0xFC):
        raise malformed(f"the subscription options {options:#04x} use reserved bits")
    if qos == 3:
        raise malformed("a SUBSCRIBE asks for QoS 3")
    if retain_handling == 3:
        raise protocol_error("a SUBSCRIBE asks for retain handling 3")
    return TopicFilter(topic, qos, bool(options & 4), bool(options & 8), retain_handling)


def _suback(cursor: Cursor, flags: int, version: int) -> Suback:
    packet_id = _packet_id(cursor)
    properties = _properties(cursor, version, PacketType.SUBACK)
    return Suback(packet_id, _codes(cursor), properties)


def _unsubscribe(cursor: Cursor, flags: int, version: int) -> Unsubscribe:
    packet_id = _packet_id(cursor)
    properties = _properties(cursor, version, PacketType.UNSUBSCRIBE)
    topics = []
    while cursor.remaining_bytes:
        topics.append(cursor.text())
    if not topics:
        raise protocol_error("an UNSUBSCRIBE names no topic filter")
    return Unsubscribe(packet_id, tuple(topics), properties)


def _unsuback(cursor: Cursor, flags: int, version: int) -> Unsuback:
    packet_id = _packet_id(cursor)
    if version != MQTT_5:
        return Unsuback(packet_id)
    properties = decode_properties(cursor, PacketType.UNSUBACK)
    return Unsuback(packet_id, _codes(cursor), properties)


def _codes(cursor: Cursor) -> tuple[int, ...]:
    codes = tuple(_code(cursor) for _ in range(cursor.remaining_bytes))
    if not codes:
        raise protocol_error("an acknowledgement of a subscription carries no reason code")
    return codes


def _pingreq(cursor: Cursor, flags: int, version: int) -> Pingreq:
    return Pingreq()


def _pingresp(cursor: Cursor, flags: int, version: int) -> Pingresp:
    return Pingresp()


def _disconnect(cursor: Cursor, flags: int, version: int) -> Disconnect:
    return Disconnect(*_code_and_properties(cursor, version, PacketType.DISCONNECT))


def _auth(cursor: Cursor, flags: int, version: int) -> Auth:
    return Auth(*_code_and_properties(cursor, version, PacketType.AUTH))


_PARSERS: dict[PacketType, Parser] = {
    PacketType.CONNECT: _connect,
    PacketType.CONNACK: _connack,
    PacketType.PUBLISH: _publish,
    PacketType.PUBACK: _acknowledgement(PacketType.PUBACK, Puback),
    PacketType.PUBREC: _acknowledgement(PacketType.PUBREC, Pubrec),
    PacketType.PUBREL: _acknowledgement(PacketType.PUBREL, Pubrel),
    PacketType.PUBCOMP: _acknowledgement(PacketType.PUBCOMP, Pubcomp),
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.SUBACK: _suback,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.UNSUBACK: _unsuback,
    PacketType.PINGREQ: _pingreq,
    PacketType.PINGRESP: _pingresp,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _auth,
}
