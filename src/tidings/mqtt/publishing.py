"""How can a QoS 0 PUBLISH cost less than a microsecond?

Almost every packet of a busy broker is one, so it has a fast path beside the general codec: one
loop over all packets of a read, in which the only call per packet builds its value. What repeats
from message to message (topics, property blocks, headers) is looked up instead of parsed.

The fast path takes a packet only if it is certainly correct. It stops before any other packet, and
the general codec then parses or refuses that one. So the fast path could be left out without
changing a single result; a property test checks that both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TypeVar

from msgspec.structs import replace

from tidings.core.cache import BoundedCache
from tidings.core.errors import WireError
from tidings.mqtt.decoding import topic_name
from tidings.mqtt.packet_types import PacketType
from tidings.mqtt.packets import MQTT_5, Publish
from tidings.mqtt.primitives import encode_text, encode_variable
from tidings.mqtt.properties import (
    NO_PROPERTIES,
    Properties,
    UserProperties,
    decode_block,
    encode_block,
    encode_properties,
)

K = TypeVar("K")
V = TypeVar("V")

REMEMBERED = 8_192  # results of each function: a few megabytes at most, shared by all clients
REMEMBERED_BYTES = 256  # longer topics and property blocks are computed each time
PLAIN_PUBLISH = 0x30  # QoS 0, not retained, not a repetition


class Remembering(BoundedCache[K, V]):
    """A function that remembers its results; looking one up costs no more than a dict does."""

    def __init__(self, compute: Callable[[K], V], size_bytes: Callable[[K, V], int]) -> None:
        super().__init__(REMEMBERED)
        self._compute, self._size_bytes = compute, size_bytes

    def __missing__(self, key: K) -> V:
        value = self._compute(key)
        fits = self._size_bytes(key, value) <= REMEMBERED_BYTES
        return self.keep(key, value) if fits else value


def _size_of_key(key: Sized, value: object) -> int:
    return len(key)


def _size_of_value(key: object, value: Sized) -> int:
    return len(value)


def _fixed_header(remaining_bytes: int) -> bytes:
    return bytes((PLAIN_PUBLISH,)) + encode_variable(remaining_bytes)


def _block(block: bytes) -> Properties:
    return decode_block(block, PacketType.PUBLISH)


def _property_field(properties: Properties) -> bytes:
    return encode_properties(properties, PacketType.PUBLISH)


def _header_block(properties: Properties) -> bytes:
    return encode_block(properties, PacketType.PUBLISH)


_topics: Remembering[bytes, str] = Remembering(topic_name, _size_of_key)
_blocks: Remembering[bytes, Properties] = Remembering(_block, _size_of_key)
_fixed_headers: Remembering[int, bytes] = Remembering(_fixed_header, _size_of_value)
_topic_fields: Remembering[str, bytes] = Remembering(encode_text, _size_of_value)
_property_fields: Remembering[Properties, bytes] = Remembering(_property_field, _size_of_value)
_header_blocks: Remembering[Properties, bytes] = Remembering(_header_block, _size_of_value)


def take_publishes(
    data: bytes, position: int, version: int, limit_bytes: int, append: Callable[[Publish], object]
) -> int:
    """Appends the plain PUBLISH packets that start at `position`; returns where they end.

    The loop ends before the first packet that is not one, not all there, or not right.
    """
    end, is_version_5 = len(data), version == MQTT_5
    topics, blocks, properties = _topics, _blocks, NO_PROPERTIES
    try:
        while position < end and data[position] == PLAIN_PUBLISH:
            length, start = data[position + 1], position + 2
            if length > 127:
                upper = data[start]
                if not 0 < upper < 128:
                    break  # over 16 KiB, where copying takes most of the time, or padded
                length += (upper << 7) - 128
                start += 1
            stop = start + length
            after_topic = start + 2 + (data[start] << 8) + data[start + 1]
            if stop > end or after_topic > stop or stop - position > limit_bytes:
                break
            topic = topics[data[start + 2 : after_topic]]
            if is_version_5:
                after_length = after_topic + 1
                block_bytes = data[after_topic]
                if block_bytes:
                    if block_bytes > 127 or after_length + block_bytes > stop:
                        break
                    after_topic = after_length + block_bytes
                    properties = blocks[data[after_length:after_topic]]
                    if properties.topic_alias or properties.subscription_identifiers:
                        break
                elif after_length > stop:
                    break
                else:
                    after_topic, properties = after_length, NO_PROPERTIES
            append(Publish(topic, data[after_topic:stop], properties))
            position = stop
    except (IndexError, WireError):
        pass  # the read ends inside this packet, or the general codec says what is wrong with it
    return position


def encode_publish(topic: str, payload: bytes, properties: Properties, version: int) -> bytes:
    """A QoS 0 PUBLISH as bytes, the same for every subscriber of this version."""
    topic_field = _topic_fields[topic]
    if version != MQTT_5:
        header = _fixed_headers[len(topic_field) + len(payload)]
        return b"".join((header, topic_field, payload))
    field = b"\0" if properties is NO_PROPERTIES else _property_fields[properties]
    header = _fixed_headers[len(topic_field) + len(field) + len(payload)]
    return b"".join((header, topic_field, field, payload))


def headers_of(properties: Properties) -> bytes:
    """All properties but the user properties, as one block that brokers pass on unread."""
    if properties is NO_PROPERTIES:
        return b""
    return _header_blocks[replace(properties, user_properties=())]  # a key is kept, and may be long


def delivered_properties(
    headers: bytes, user_properties: UserProperties, age_s: float
) -> Properties:
    """The properties of a message that reaches a subscriber at this age.

    The expiry interval shrinks by the time the message waited (MQTT-3.3.2-6), in whole seconds.
    """
    if not headers:
        return Properties(user_properties=user_properties) if user_properties else NO_PROPERTIES
    stated = _blocks[headers]
    left_s = stated.message_expiry_s
    if left_s is not None:
        left_s = max(0, left_s - int(age_s))
    return replace(stated, user_properties=user_properties, message_expiry_s=left_s)
