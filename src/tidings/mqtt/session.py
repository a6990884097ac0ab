"""How does a conversation with one client go, seen from the server?

Bytes and the time go in; requests come out in the order the client made them, and the bytes to
answer with are taken from `outgoing()`. Requests are the client's own packets, after they were
found legal, and at the very end one `Closed`, with the will if that is to be published.

States
------
    NEW ──CONNECT──▶ ASKED ──accept()──▶ OPEN ──DISCONNECT, fault, silence, loss, close()──▶ CLOSED
     └───── fault, silence ─┴── close() ──────────────────────────────────────────────────────▲

`LEGAL` is that picture as a table; any packet it does not name is a protocol error (0x82). After a
CONNECT the session waits for `accept()` or `close(code)`, because only the caller can check user
names and client identifiers. What the client sends before that is returned by `accept`.

What is not offered
-------------------
An MQTT 5 client reads it in CONNACK and is refused if it uses it anyway. MQTT 3.1.1 cannot express
most of it, so this is what happens there:

- QoS 1 and 2: a subscription is granted QoS 0. A PUBLISH is answered with DISCONNECT 0x9B, in 3.1.1
  by closing the connection: we must not acknowledge what we do not keep. A will with QoS 1 or 2 is
  refused in 5 (0x9B) and published with QoS 0 in 3.1.1, where nobody waits for its answer.
- Retained messages: 0x9A in 5; in 3.1.1 the message is delivered, and not retained.
- Sessions that outlive a connection: never present, and CONNACK says so (session expiry 0).
- A will's delay counts as 0: the standard publishes a will no later than its session ends, and here
  a session ends with its connection.

Rules are cited by their numbers in MQTT 5 (MQTT-3.1.2-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from math import inf
from typing import TypeAlias

from msgspec.structs import replace

from tidings.core.errors import WireError
from tidings.core.values import Value
from tidings.mqtt.codec import DEFAULT_LIMITS, Limits, PacketDecoder, encode
from tidings.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from tidings.mqtt.properties import NO_PROPERTIES, Properties
from tidings.mqtt.reasons import RETURN_CODES, ReasonCode
from tidings.mqtt.refusals import refuse_what_is_not_offered

KEEP_ALIVE_FACTOR = 1.5  # a client may be silent for so many keep-alives (MQTT-3.1.2-22)
LONGEST_REASON = 500  # characters of a reason string: an explanation, not an essay


class Closed(Value, frozen=True):
    """The conversation is over: send what is outgoing, then close the connection."""

    code: int  # an MQTT 5 reason code, whatever the client's version
    reason: str
    will: Publish | None = None  # to be published now


Request: TypeAlias = Connect | Publish | Subscribe | Unsubscribe | Closed


class State(Enum):
    NEW = auto()  # connected, CONNECT not yet here
    ASKED = auto()  # CONNECT is here, our answer is not decided
    OPEN = auto()
    CLOSED = auto()


LEGAL: dict[tuple[State, type], State] = {
    (State.NEW, Connect): State.ASKED,
    (State.ASKED, Connack): State.OPEN,  # ours; the rest are the client's
    (State.OPEN, Publish): State.OPEN,
    (State.OPEN, Subscribe): State.OPEN,
    (State.OPEN, Unsubscribe): State.OPEN,
    (State.OPEN, Pingreq): State.OPEN,
    (State.OPEN, Disconnect): State.CLOSED,
}


class Session:
    """The server's half of the conversation with one client."""

    def __init__(self, now: float, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits, self._decoder = limits, PacketDecoder(limits)
        self._state, self._heard_at = State.NEW, now
        self._connect = Connect(MQTT_3_1_1)
        self._outgoing: list[bytes] = []

    @property
    def version(self) -> int:
        return self._connect.version

    @property
    def max_outgoing_bytes(self) -> float:
        """The largest packet this client takes; a larger one must not be sent (MQTT-3.1.2-24)."""
        return self._connect.properties.maximum_packet_bytes or inf

    @property
    def deadline_at(self) -> float:
        """The instant at which `tick` ends the conversation, if nothing is heard until then."""
        if self._state is State.NEW:
            return self._heard_at + self._limits.connect_within_s
        if self._state is State.OPEN and self._connect.keep_alive_s:
            return self._heard_at + KEEP_ALIVE_FACTOR * self._connect.keep_alive_s
        return inf

    @property
    def unread_bytes(self) -> int:
        """Of a packet that is not all there."""
        return self._decoder.kept_bytes

    @property
    def held_bytes(self) -> int:
        """What is kept for this client: a packet that is not all there, and its will."""
        will = self._connect.will
        return self.unread_bytes + (will.size_bytes if will else 0)

    def outgoing(self) -> bytes:
        """Takes the bytes to send, often none."""
        if not self._outgoing:
            return b""
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    def feed(self, data: bytes, now: float) -> list[Request]:
        """What the client asks for with these bytes."""
        requests: list[Request] = []
        if self._state is State.CLOSED:
            return requests
        try:
            if self._state is State.ASKED:
                self._decoder.hold(data)
            elif self._decoder.receive(data):
                self._take_packets(requests, now)
        except WireError as fault:
            self._end(fault.code, fault.problem, requests)
        return requests

    def accept(self, now: float, assigned_client_id: str | None = None) -> list[Request]:
        """Answers CONNECT with yes; returns what the client asked for while it waited.

        A client with an empty identifier is told the one it was given.
        """
        if self._state is not State.ASKED:
            return []
        self._state = LEGAL[self._state, Connack]
        self._heard_at = now
        self._say(Connack(properties=self._offer(assigned_client_id)))
        return self.feed(b"", now)

    def suback(self, packet_id: int, codes: Sequence[int], reason: str | None = None) -> None:
        """Answers SUBSCRIBE: one code for each filter, and why not, if not."""
        if self._state is State.OPEN:
            self._say(Suback(packet_id, tuple(codes), self._explanation(reason)))

    def unsuback(self, packet_id: int, codes: Sequence[int], reason: str | None = None) -> None:
        """Answers UNSUBSCRIBE."""
        if self._state is State.OPEN:
            self._say(Unsuback(packet_id, tuple(codes), self._explanation(reason)))

    def close(self, code: int, reason: str) -> list[Request]:
        """Ends the conversation from our side: as a refusal if CONNECT is not yet answered."""
        requests: list[Request] = []
        if self._state is not State.CLOSED:
            self._end(code, reason, requests)
        return requests

    def lost(self) -> list[Request]:
        """The connection is gone; nothing more can be said."""
        requests = self.close(ReasonCode.UNSPECIFIED_ERROR, "the connection was lost")
        self._outgoing.clear()
        return requests

    def excused(self, now: float) -> None:
        """The client was not listened to: its silence until now does not count."""
        self._heard_at = now

    def tick(self, now: float) -> list[Request]:
        """Ends the conversation if the client was silent for too long."""
        if now < self.deadline_at:
            return []
        silent_s = now - self._heard_at
        return self.close(ReasonCode.KEEP_ALIVE_TIMEOUT, f"nothing was heard for {silent_s:.1f} s")

    def _take_packets(self, requests: list[Request], now: float) -> None:
        decoder = self._decoder
        while self._state in (State.NEW, State.OPEN):
            if self._state is State.OPEN:
                decoder.take_publishes(requests.append)
            packet = decoder.next_packet()
            if packet is None:
                break
            self._handle(packet, requests)
        if decoder.keep_rest():
            self._heard_at = now

    def _handle(self, packet: Packet, requests: list[Request]) -> None:
        following = LEGAL.get((self._state, type(packet)))
        if following is None:
            name, state = type(packet).__name__.upper(), self._state.name
            problem = f"a {name} is not expected while the connection is {state}"
            raise WireError(problem, ReasonCode.PROTOCOL_ERROR)
        if isinstance(packet, Connect):
            unread = replace(packet.properties, user_properties=())  # they may be long
            self._connect = replace(packet, properties=unread)
        refuse_what_is_not_offered(packet, self._connect)
        self._state = following
        if isinstance(packet, Pingreq):
            self._say(Pingresp())
        elif isinstance(packet, Disconnect):
            requests.append(self._goodbye(packet))
        elif isinstance(packet, Connect | Publish | Subscribe | Unsubscribe):
            requests.append(packet)

    def _goodbye(self, packet: Disconnect) -> Closed:
        """Only a DISCONNECT with code 0 makes us forget the will (MQTT 5, section 3.14.4)."""
        reason = packet.properties.reason_string or "the client disconnected"
        return Closed(packet.code, reason, self._connect.will if packet.code else None)

    def _end(self, code: int, reason: str, requests: list[Request]) -> None:
        """Closes, and says why if the client's version has a packet for that."""
        explained = Properties(reason_string=_one_line(reason))
        opened, version = self._state is State.OPEN, self._decoder.version
        if opened and version == MQTT_5:
            self._say(Disconnect(code, explained))
        elif not opened and version and (_wire_version(version) == MQTT_5 or code in RETURN_CODES):
            self._say(Connack(code, properties=explained))
        self._state = State.CLOSED
        requests.append(Closed(code, reason, self._connect.will if opened else None))

    def _offer(self, assigned_client_id: str | None) -> Properties:
        """What CONNACK tells an MQTT 5 client about this server."""
        return Properties(
            session_expiry_s=0 if self._connect.properties.session_expiry_s else None,
            assigned_client_id=assigned_client_id,
            topic_alias_maximum=0,
            maximum_qos=0,
            retain_available=0,
            maximum_packet_bytes=self._limits.max_packet_bytes,
            subscription_identifiers_available=0,
            shared_subscription_available=0,
        )

    def _explanation(self, reason: str | None) -> Properties:
        """A reason string, unless the client has asked for none (MQTT-3.1.2-29)."""
        if reason is None or self._connect.properties.request_problem_information == 0:
            return NO_PROPERTIES
        return Properties(reason_string=_one_line(reason))

    def _say(self, packet: Connack | Suback | Unsuback | Pingresp | Disconnect) -> None:
        """Queues a packet; one too large for the client loses its explanation, or is not sent."""
        version = _wire_version(self._decoder.version)
        data = encode(packet, version)
        if len(data) > self.max_outgoing_bytes and not isinstance(packet, Pingresp):
            unexplained = replace(packet.properties, reason_string=None)
            data = encode(replace(packet, properties=unexplained), version)
        if len(data) <= self.max_outgoing_bytes:
            self._outgoing.append(data)


def _one_line(reason: str) -> str:
    """The first line of a reason: clients may refuse control characters (MQTT 5, 1.5.4)."""
    line = reason.partition("\n")[0]
    return "".join(c if c.isprintable() else "?" for c in line)[:LONGEST_REASON]


def _wire_version(level: int) -> int:
    """The version in which a client is answered; the top bit of a bridge's level is ignored."""
    return MQTT_5 if level & 0x7F >= MQTT_5 else MQTT_3_1_1
