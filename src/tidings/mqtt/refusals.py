"""What may a client ask by the standard that this server does not offer?

One table per packet: a test, the reason code to answer with, and the text. CONNACK has told an
MQTT 5 client most of this before. `session.py` says what is done in 3.1.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidings.core.errors import WireError
from tidings.mqtt.decoding import VERSIONS
from tidings.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Subscribe,
)
from tidings.mqtt.reasons import ReasonCode

SHARED_PREFIX = "$share/"

Rules = tuple[tuple[Callable[[Any, Connect], object], ReasonCode, str], ...]

_CONNECT_RULES: Rules = (
    (
        lambda packet, connect: packet.version not in VERSIONS,
        ReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
        "this server speaks MQTT 3.1.1 (level 4) and MQTT 5 (level 5)",
    ),
    (
        lambda packet, connect: (
            not (packet.client_id or packet.clean_start) and packet.version == MQTT_3_1_1
        ),
        ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
        "an empty client identifier needs a clean session",
    ),
    (
        lambda packet, connect: packet.properties.authentication_method is not None,
        ReasonCode.BAD_AUTHENTICATION_METHOD,
        "extended authentication is not offered, only user name and password",
    ),
    (
        lambda packet, connect: packet.version == MQTT_5 and packet.will and packet.will.qos,
        ReasonCode.QOS_NOT_SUPPORTED,
        "a will is published with QoS 0 only",
    ),
    (
        lambda packet, connect: packet.version == MQTT_5 and packet.will and packet.will.retain,
        ReasonCode.RETAIN_NOT_SUPPORTED,
        "a will cannot be retained",
    ),
)
_PUBLISH_RULES: Rules = (
    (
        lambda packet, connect: packet.qos,
        ReasonCode.QOS_NOT_SUPPORTED,
        "messages are taken with QoS 0 only",
    ),
    (
        lambda packet, connect: packet.retain and connect.version == MQTT_5,
        ReasonCode.RETAIN_NOT_SUPPORTED,
        "messages cannot be retained",
    ),
    (
        lambda packet, connect: packet.properties.topic_alias is not None,
        ReasonCode.TOPIC_ALIAS_INVALID,
        "topic aliases are not offered (the topic alias maximum is 0)",
    ),
    (
        lambda packet, connect: packet.properties.subscription_identifiers,
        ReasonCode.PROTOCOL_ERROR,
        "a client's PUBLISH must not carry a subscription identifier",
    ),
)
_SUBSCRIBE_RULES: Rules = (
    (
        lambda packet, connect: packet.properties.subscription_identifiers,
        ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        "subscription identifiers are not offered",
    ),
    (
        lambda packet, connect: (
            connect.version == MQTT_5
            and any(wanted.topic.startswith(SHARED_PREFIX) for wanted in packet.filters)
        ),
        ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
        "shared subscriptions are not offered",
    ),
)
_DISCONNECT_RULES: Rules = (
    (
        lambda packet, connect: (
            packet.properties.session_expiry_s and not connect.properties.session_expiry_s
        ),
        ReasonCode.PROTOCOL_ERROR,
        "a session that was to end with its connection cannot be prolonged",
    ),
)
_RULES: dict[type, Rules] = {
    Connect: _CONNECT_RULES,
    Publish: _PUBLISH_RULES,
    Subscribe: _SUBSCRIBE_RULES,
    Disconnect: _DISCONNECT_RULES,
}


def refuse_what_is_not_offered(packet: Packet, connect: Connect) -> None:
    """Raises `WireError` if this packet asks, under this CONNECT, for what we do not have."""
    for broken, code, problem in _RULES.get(type(packet), ()):
        if broken(packet, connect):
            raise WireError(problem, code)
