"""How does a task publish? As an MQTT 5 client of its own, on our own codec and a plain socket.

QoS 0 has no acknowledgements, but a broker serves what one client sends in order. So at the end the
client pings. A broker of ours answers when everything before the ping was served and what is
durable among it is on its disk. A broker that refuses something (a contract that makes no sense, a
packet too large) closes the connection and says why; its reason is passed on.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from math import inf
from types import TracebackType
from urllib.parse import urlsplit

from tidings.core.errors import ConfigError, TidingsError, WireError
from tidings.mqtt.codec import PacketDecoder, encode, encode_publish
from tidings.mqtt.packets import (
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
)
from tidings.mqtt.properties import NO_PROPERTIES, Properties, UserProperties
from tidings.pipeline.source.log_options import SOURCE

MQTT_PORT = 1883
ANSWER_WITHIN_S = 30.0
TRY_AGAIN_AFTER_S = 0.2
SEND_BYTES = 64 << 10  # gathered before they are sent
READ_BYTES = 65_536


class PublishError(TidingsError):
    """Messages that a broker did not take."""


class UnfitMessage(PublishError):
    """One message that no packet can hold, or none that this broker takes; others may pass."""


def broker_place(url: str) -> tuple[str, int]:
    """The host and port that a URL names."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or MQTT_PORT
    except ValueError:
        parts, host, port = urlsplit(""), None, 0
    if parts.scheme != "mqtt" or not host or parts.path.strip("/"):
        accepted = "mqtt://HOST:PORT, the mqtt_port of a broker"
        raise ConfigError(SOURCE, "url", url, accepted)
    return host, port


class MqttPublisher:
    """One connection to a broker; use it as a context, and `finish` before it ends."""

    def __init__(self, url: str, patience_s: float) -> None:
        self._url, self._place = url, broker_place(url)
        self._decoder, self._packets = PacketDecoder(version=MQTT_5), deque[Packet]()
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._socket = self._connected(patience_s)
        try:
            self._send(encode(Connect(MQTT_5), MQTT_5))
            answer = self._answer()
        except PublishError:
            self._socket.close()
            raise
        stated = answer.properties if isinstance(answer, Connack) else NO_PROPERTIES
        self._max_packet_bytes = stated.maximum_packet_bytes or inf

    def __enter__(self) -> MqttPublisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def publish(self, topic: str, payload: bytes, pairs: UserProperties) -> None:
        """Sends a message, now or with the next ones."""
        properties = Properties(user_properties=pairs) if pairs else NO_PROPERTIES
        try:
            data = encode_publish(topic, payload, properties, MQTT_5)
        except (WireError, ValueError, OverflowError) as error:
            raise UnfitMessage(f"a message on {topic!r} fits no MQTT packet: {error}") from None
        if len(data) > self._max_packet_bytes:
            accepted = f"{self._url} takes {self._max_packet_bytes} (mqtt.max_packet_bytes)"
            raise UnfitMessage(f"a message on {topic!r} has {len(data)} bytes, but {accepted}")
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes >= SEND_BYTES:
            self._flush()

    def finish(self) -> None:
        """Returns when the broker has taken everything; the connection ends in good order."""
        self._flush()
        self._send(encode(Pingreq(), MQTT_5))
        self._answer()
        self._send(encode(Disconnect(), MQTT_5))

    def _connected(self, patience_s: float) -> socket.socket:
        give_up_at = time.monotonic() + patience_s
        while True:
            try:
                return socket.create_connection(self._place, timeout=ANSWER_WITHIN_S)
            except OSError as error:
                if time.monotonic() >= give_up_at:
                    why = error.strerror or str(error)
                    advice = "Is a broker running whose mqtt_port that is?"
                    raise PublishError(f"{self._url} cannot be reached: {why}. {advice}") from None
                time.sleep(TRY_AGAIN_AFTER_S)

    def _flush(self) -> None:
        data, self._unsent, self._unsent_bytes = b"".join(self._unsent), [], 0
        self._send(data)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            self._answer()  # which raises what the broker said at last, if it said anything
            raise self._broken(error) from None

    def _answer(self) -> Connack | Pingresp:
        """What the broker says next; if it refuses us, or is gone, that is an error."""
        try:
            packet = self._next_packet()
        except (OSError, WireError) as error:
            raise self._broken(error) from None
        match packet:
            case Connack(code=0) | Pingresp():
                return packet
            case Connack() | Disconnect():
                reason = packet.properties.reason_string or f"code {packet.code:#04x}"
                raise PublishError(f"{self._url} refuses: {reason}")
            case _:
                name = type(packet).__name__.upper()
                raise PublishError(f"{self._url} is no MQTT 5 broker: it said {name}")

    def _next_packet(self) -> Packet:
        while not self._packets:
            data = self._socket.recv(READ_BYTES)
            if not data:
                raise ConnectionError("it closed the connection")
            if self._decoder.receive(data):
                while (packet := self._decoder.next_packet()) is not None:
                    self._packets.append(packet)
                self._decoder.keep_rest()
        return self._packets.popleft()

    def _broken(self, error: Exception) -> PublishError:
        why = getattr(error, "strerror", None) or str(error)
        return PublishError(f"{self._url} has not taken everything: {why}")
