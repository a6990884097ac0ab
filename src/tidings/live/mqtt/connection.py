"""How do bytes come from and go to one MQTT client? One socket, one session, one outbox."""

from __future__ import annotations

import asyncio
import socket
from math import inf
from typing import TYPE_CHECKING, Any, cast

from tidings.live.mqtt.filters import ClientFilters
from tidings.mqtt.packets import MQTT_3_1_1
from tidings.mqtt.reasons import ReasonCode
from tidings.mqtt.session import Request, Session

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
        self.filters = ClientFilters()
        self.dropped = 0  # messages that were not sent because it reads too slowly
        self.held = list[Request]()  # what it asked for and has to wait for
        self._held_at = 0.0  # since when nothing is read from it
        self._transport: asyncio.Transport | None = None
        self._outbox: list[bytes] = []
        self._answers: list[bytes] = []  # what in the outbox is no message
        self._messages = 0  # in the outbox
        self._closing = False  # when the outbox has been written

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
        requests = self.session.feed(data, now)
        if unread_bytes := self.session.unread_bytes:
            if front.room.has_room(self, 0):
                front.room.taken(min(unread_bytes, len(data)))
            else:
                problem = "its packet is not all there, and clients take all memory they may"
                requests += self.session.close(ReasonCode.QUOTA_EXCEEDED, problem)
        front.handle(self, requests, now)

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

    @property
    def held_bytes(self) -> int:
        """What this client takes of the memory for clients."""
        unsent_bytes = self._transport.get_write_buffer_size() if self._transport else 0
        return unsent_bytes + self.session.held_bytes + self.filters.size_bytes

    def hold(self, rest: list[Request], now: float) -> None:
        """Read no more: its kernel, and then the client itself, will wait."""
        self.held, self._held_at = rest, now
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def release(self, now: float) -> tuple[list[Request], float]:
        """Read again; what was held, and for how long."""
        held, self.held = self.held, []
        self.session.excused(now)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        return held, now - self._held_at

    def leave_unread(self) -> None:
        """Reads nothing any more; what is for the client is still written."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    # ---- to the socket

    def offer(self, data: bytes, messages: int) -> None:
        """Some messages for this client, to be written when the round ends."""
        self._outbox.append(data)
        self._messages += messages

    def answer(self) -> None:
        """The session's own packets, in their place among the messages."""
        if data := self.session.outgoing():
            self._outbox.append(data)
            self._answers.append(data)

    def flush(self) -> None:
        """The round is stored: writes the outbox, and ends the connection if it is to end."""
        transport = self._transport
        if transport is None:
            return
        if self._outbox:
            self._write(transport)
        if self._closing:
            self._end(transport)

    def close(self) -> None:
        """Ends the connection when the round ends, after all that it is still to be told."""
        self._closing = True

    def cut(self) -> None:
        """Ends the connection at once: nothing that was not written leaves."""
        self._outbox.clear()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def _write(self, transport: asyncio.Transport) -> None:
        """If the client does not read, its messages are dropped; it is still answered."""
        outbox, room = self._outbox, self._front.room
        data = b"".join(outbox) if len(outbox) > 1 else outbox[0]
        if self._messages and (unsent_bytes := transport.get_write_buffer_size()):
            if unsent_bytes > self._front.max_unsent_bytes or not room.has_room(self, len(data)):
                self._drop(unsent_bytes)
                data = b"".join(self._answers)
            room.taken(len(data))
        transport.write(data)
        outbox.clear()
        self._answers.clear()
        self._messages = 0

    def _end(self, transport: asyncio.Transport) -> None:
        """After all that was written; abruptly if the client does not read."""
        if transport.get_write_buffer_size() > self._front.max_unsent_bytes:
            transport.abort()
        else:
            transport.close()
        self._transport = None  # nothing is written any more

    def _drop(self, unsent_bytes: int) -> None:
        if not self.dropped:
            limit = f"{unsent_bytes:,} bytes wait for it"
            words = f"client {self.client_id} reads too slowly: {limit}, messages are dropped"
            self._front.notices.warn(words)
        self.dropped += self._messages
