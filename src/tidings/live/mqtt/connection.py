"""How do bytes come from and go to one MQTT client? One socket, one session, one outbox."""

from __future__ import annotations

import asyncio
import socket
from math import inf
from typing import TYPE_CHECKING, Any, cast

from tidings.mqtt.packets import MQTT_3_1_1
from tidings.mqtt.session import Session

if TYPE_CHECKING:
    from tidings.live.mqtt.front import MqttFront


class MqttConnection(asyncio.Protocol):
    """One client's connection. What its packets mean is decided by the front."""

    def __init__(self, front: MqttFront) -> None:
        self._front = front
        self.session = Session(front.driver.clock(), front.limits)
        self.client_id = ""  # from CONNECT on
        self.version = MQTT_3_1_1
        self.max_packet_bytes: float = inf
        self.filters: dict[str, str] = {}  # topic filter → id of its subscription
        self.dropped = 0  # messages that were not sent because it reads too slowly
        self._transport: asyncio.Transport | None = None
        self._outbox: list[bytes] = []
        self._messages = 0  # in the outbox

    # ---- from the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        self._transport = transport
        client = transport.get_extra_info("socket")
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self._front.admit(self):
            transport.abort()

    def data_received(self, data: bytes) -> None:
        front = self._front
        now = front.driver.clock()
        front.handle(self, self.session.feed(data, now), now)

    def connection_lost(self, problem: Exception | None) -> None:
        self._transport = None
        self._front.handle(self, self.session.lost(), self._front.driver.clock())
        self._front.disconnected(self)
        if self.dropped:
            words = f"client {self.client_id} lost {self.dropped} messages in all"
            self._front.notices.warn(words, f"lost {self.client_id}")

    @property
    def peer(self) -> Any:
        """Where the client is."""
        return self._transport and self._transport.get_extra_info("peername")

    # ---- to the socket

    def offer(self, data: bytes, messages: int) -> None:
        """Some messages for this client, to be written when the round ends."""
        self._outbox.append(data)
        self._messages += messages

    def answer(self) -> None:
        """The session's own packets, in their place among the messages."""
        if data := self.session.outgoing():
            self._outbox.append(data)

    def flush(self) -> None:
        """Writes the outbox at once; if the client does not read, its messages are dropped."""
        outbox, transport = self._outbox, self._transport
        if not outbox or transport is None:
            return
        if self._messages and transport.get_write_buffer_size() > self._front.max_unsent_bytes:
            self._drop()
        else:
            transport.write(b"".join(outbox) if len(outbox) > 1 else outbox[0])
        outbox.clear()
        self._messages = 0

    def close(self) -> None:
        """Ends the connection after all that was written; abruptly if the client does not read."""
        self.flush()
        if self._transport is None:
            return
        if self._transport.get_write_buffer_size() > self._front.max_unsent_bytes:
            self._transport.abort()
        else:
            self._transport.close()
        self._transport = None  # nothing is written any more

    def _drop(self) -> None:
        if not self.dropped:
            limit = f"more than {self._front.max_unsent_bytes} bytes wait for it"
            words = f"client {self.client_id} reads too slowly: {limit}, messages are dropped"
            self._front.notices.warn(words)
        self.dropped += self._messages
