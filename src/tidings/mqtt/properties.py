"""Which properties may a packet of MQTT 5 carry, and how are they written?

A property is an identifier and a value. `PROPERTY_TABLE` says which packets may carry it, its type
and its range (section 2.2.2.2, table 2-4). Decoding checks all of this: unknown or misplaced
identifiers are malformed, repetitions and values out of range are protocol errors. Encoding writes
only what the packet may carry, so the properties of a will can be given to a PUBLISH unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tidings.core.errors import WireError
from tidings.mqtt import primitives
from tidings.mqtt.packet_types import PacketType
from tidings.mqtt.primitives import WILDCARDS, Cursor, malformed, protocol_error
from tidings.mqtt.reasons import ReasonCode

UserProperties = tuple[tuple[str, str], ...]


class Properties(Struct, frozen=True, gc=False, cache_hash=True):
    """All properties of MQTT 5; None is absent. The hash is kept, as encodings are cached by it."""

    payload_format: int | None = None
    message_expiry_s: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    subscription_identifiers: tuple[int, ...] = ()
    session_expiry_s: int | None = None
    assigned_client_id: str | None = None
    server_keep_alive_s: int | None = None
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    request_problem_information: int | None = None
    will_delay_s: int | None = None
    request_response_information: int | None = None
    response_information: str | None = None
    server_reference: str | None = None
    reason_string: str | None = None
    receive_maximum: int | None = None
    topic_alias_maximum: int | None = None
    topic_alias: int | None = None
    maximum_qos: int | None = None
    retain_available: int | None = None
    user_properties: UserProperties = ()
    maximum_packet_bytes: int | None = None
    wildcard_subscription_available: int | None = None
    subscription_identifiers_available: int | None = None
    shared_subscription_available: int | None = None


NO_PROPERTIES = Properties()


class PropertyRule(Struct, frozen=True):
    """What the standard says about one property."""

    name: str
    read: Callable[[Cursor], Any]
    write: Callable[[Any], bytes]
    carriers: frozenset[PacketType]
    accepted: range | None = None  # None: all that the type can hold
    repeats: bool = False


def _rule(name: str, type_name: str, carriers: str, accepted: range | None = None) -> PropertyRule:
    read, write = _TYPES[type_name]
    packets = frozenset(PacketType[carrier] for carrier in carriers.split())
    return PropertyRule(name, read, write, packets, accepted, name in _REPEATED)


def _encode_byte(value: int) -> bytes:
    return value.to_bytes(1, "big")


_TYPES: dict[str, tuple[Callable[[Cursor], Any], Callable[[Any], bytes]]] = {
    "byte": (Cursor.byte, _encode_byte),
    "two bytes": (Cursor.two_bytes, primitives.encode_two_bytes),
    "four bytes": (Cursor.four_bytes, primitives.encode_four_bytes),
    "variable": (Cursor.variable, primitives.encode_variable),
    "binary": (Cursor.binary, primitives.encode_binary),
    "text": (Cursor.text, primitives.encode_text),
    "pair": (Cursor.pair, primitives.encode_pair),
}
_REPEATED = ("user_properties", "subscription_identifiers")
_FLAG = range(0, 2)
_NOT_ZERO = range(1, 1 << 32)
_MESSAGE = "PUBLISH WILL"
_ANSWER = "CONNACK PUBACK PUBREC PUBREL PUBCOMP SUBACK UNSUBACK DISCONNECT AUTH"

PROPERTY_TABLE: dict[int, PropertyRule] = {
    0x01: _rule("payload_format", "byte", _MESSAGE, _FLAG),
    0x02: _rule("message_expiry_s", "four bytes", _MESSAGE),
    0x03: _rule("content_type", "text", _MESSAGE),
    0x08: _rule("response_topic", "text", _MESSAGE),
    0x09: _rule("correlation_data", "binary", _MESSAGE),
    0x0B: _rule("subscription_identifiers", "variable", "PUBLISH SUBSCRIBE", _NOT_ZERO),
    0x11: _rule("session_expiry_s", "four bytes", "CONNECT CONNACK DISCONNECT"),
    0x12: _rule("assigned_client_id", "text", "CONNACK"),
    0x13: _rule("server_keep_alive_s", "two bytes", "CONNACK"),
    0x15: _rule("authentication_method", "text", "CONNECT CONNACK AUTH"),
    0x16: _rule("authentication_data", "binary", "CONNECT CONNACK AUTH"),
    0x17: _rule("request_problem_information", "byte", "CONNECT", _FLAG),
    0x18: _rule("will_delay_s", "four bytes", "WILL"),
    0x19: _rule("request_response_information", "byte", "CONNECT", _FLAG),
    0x1A: _rule("response_information", "text", "CONNACK"),
    0x1C: _rule("server_reference", "text", "CONNACK DISCONNECT"),
    0x1F: _rule("reason_string", "text", _ANSWER),
    0x21: _rule("receive_maximum", "two bytes", "CONNECT CONNACK", _NOT_ZERO),
    0x22: _rule("topic_alias_maximum", "two bytes", "CONNECT CONNACK"),
    0x23: _rule("topic_alias", "two bytes", "PUBLISH"),
    0x24: _rule("maximum_qos", "byte", "CONNACK", _FLAG),
    0x25: _rule("retain_available", "byte", "CONNACK", _FLAG),
    0x26: _rule("user_properties", "pair", f"{_ANSWER} {_MESSAGE} CONNECT SUBSCRIBE UNSUBSCRIBE"),
    0x27: _rule("maximum_packet_bytes", "four bytes", "CONNECT CONNACK", _NOT_ZERO),
    0x28: _rule("wildcard_subscription_available", "byte", "CONNACK", _FLAG),
    0x29: _rule("subscription_identifiers_available", "byte", "CONNACK", _FLAG),
    0x2A: _rule("shared_subscription_available", "byte", "CONNACK", _FLAG),
}


def decode_properties(cursor: Cursor, carrier: PacketType) -> Properties:
    """The properties at the cursor, their length first."""
    size_bytes = cursor.variable()
    return decode_block(cursor.take(size_bytes), carrier) if size_bytes else NO_PROPERTIES


def decode_block(block: bytes, carrier: PacketType) -> Properties:
    """The properties in a block of bytes whose length was already read."""
    cursor, found = Cursor(block), dict[str, Any]()
    while cursor.remaining_bytes:
        rule = _rule_for(cursor.variable(), carrier)
        value = rule.read(cursor)
        if rule.accepted is not None and value not in rule.accepted:
            raise protocol_error(f"property {rule.name} of a {carrier.name} is {value}")
        if rule.repeats:
            found.setdefault(rule.name, []).append(value)
        elif rule.name in found:
            raise protocol_error(f"property {rule.name} of a {carrier.name} is there twice")
        else:
            found[rule.name] = value
    return _checked(found, carrier)


def _rule_for(identifier: int, carrier: PacketType) -> PropertyRule:
    rule = PROPERTY_TABLE.get(identifier)
    if rule is None:
        raise malformed(f"no property has the identifier {identifier:#04x}")
    if carrier not in rule.carriers:
        raise malformed(f"a {carrier.name} cannot carry the property {rule.name}")
    return rule


def _checked(found: dict[str, Any], carrier: PacketType) -> Properties:
    """The rules that are not about one property's type and range."""
    for name in _REPEATED:
        if name in found:
            found[name] = tuple(found[name])
    if carrier is PacketType.SUBSCRIBE and len(found.get("subscription_identifiers", ())) > 1:
        raise protocol_error("a SUBSCRIBE carries two subscription identifiers")
    if found.get("topic_alias") == 0:
        raise WireError("a topic alias is 0", ReasonCode.TOPIC_ALIAS_INVALID)
    if "authentication_data" in found and "authentication_method" not in found:
        raise protocol_error("authentication data came without an authentication method")
    if not WILDCARDS.isdisjoint(found.get("response_topic", "")):
        raise protocol_error("a response topic contains a wildcard")
    return Properties(**found)


def encode_properties(properties: Properties, carrier: PacketType) -> bytes:
    """The length and the block of what this packet may carry, in the order of the table."""
    if properties is NO_PROPERTIES:
        return b"\0"
    block = encode_block(properties, carrier)
    return primitives.encode_variable(len(block)) + block


def encode_block(properties: Properties, carrier: PacketType) -> bytes:
    parts: list[bytes] = []
    for identifier, rule in PROPERTY_TABLE.items():
        value = getattr(properties, rule.name)
        if value is None or carrier not in rule.carriers:
            continue
        for item in value if rule.repeats else (value,):
            parts += (_encode_byte(identifier), rule.write(item))
    return b"".join(parts)
