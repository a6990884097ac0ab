"""How does a client talk to a broker? Over one MQTT 5 connection, with QoS 0.

A task listens all the time, so a broker that ends the connection is noticed at once, whatever the
client is waiting for. It works on a plain socket, since a stream of asyncio forgets what came in as
soon as writing fails, and just then the broker's last words say why.

QoS 0 has no acknowledgements, but a broker serves what one client sends in order: `settle` pings
twice. The answer to the first ping says that everything before it was served, the answer to the
second that the broker's turn which served it has ended, and with it the commit of what is durable.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from math import inf
from typing import Any, TypeVar

from tidings.core.errors import TidingsError, WireError
from tidings.mqtt.codec import Limits, PacketDecoder, encode, encode_publish
from tidings.mqtt.packets import (
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
    TopicFilter,
)
from tidings.mqtt.properties import Properties
from tidings.mqtt.reasons import FIRST_FAILURE, ReasonCode

T = TypeVar("T")
Answer = TypeVar("Answer", Connack, Suback, Pingresp)

ANSWER_WITHIN_S = 30.0
ASK_AFTER_S = 30.0  # without a message: is the broker still there?
READ_BYTES = 65_536
UNREAD_MESSAGES = 1_000  # then nothing is read any more, and the rest waits at the broker
LARGEST_PACKET = Limits(max_packet_bytes=(1 << 28) + 4)  # that MQTT can write
PACKET_ID = 1  # of every SUBSCRIBE: there are never two on their way


class BrokerUnreachable(TidingsError):
    """Nobody answers where a broker should be."""


class BrokerRefusal(TidingsError):
    """What a broker does not grant, in its own words."""


class ConversationEnded(TidingsError):
    """The broker, or the way to it, is gone in the middle of a conversation."""


class MqttClient:
    """One connection to a broker; use it as an asynchronous context."""

    def __init__(self, host: str, port: int, client_id: str = "") -> None:
        self._host, self._port, self._client_id = host, port, client_id
        self.place = f"{host}:{port}"
        self._max_packet_bytes = inf
        self._answers = asyncio.Queue[Packet]()
        self._messages = asyncio.Queue[Publish](UNREAD_MESSAGES)

    async def __aenter__(self) -> MqttClient:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                self._socket = await _connected(self._host, self._port)
        except OSError as error:  # a TimeoutError is one
            raise BrokerUnreachable(f"no broker is at {self.place}: {_why(error)}.") from None
        self._listening = asyncio.create_task(self._listen())
        try:
            await self._send(encode(Connect(MQTT_5, self._client_id), MQTT_5))
            answer = await self._answer(Connack)
            self._refuse_failure("the connection", answer, answer.code)
        except BaseException as error:
            await self.__aexit__()
            if isinstance(error, ConversationEnded):
                problem = f"{error} Is that a broker's MQTT port?"
                raise BrokerRefusal(problem) from None
            raise
        self._max_packet_bytes = answer.properties.maximum_packet_bytes or inf
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        with suppress(OSError):  # the broker has ended it, or does not read
            self._socket.send(encode(Disconnect(), MQTT_5))
        self._socket.close()

    async def subscribe(self, topics: Sequence[str], properties: Properties) -> None:
        """Returns when the broker has granted all these topic filters."""
        filters = tuple(map(TopicFilter, topics))
        await self._send(encode(Subscribe(PACKET_ID, filters, properties), MQTT_5))
        answer = await self._answer(Suback)
        for topic, code in zip(topics, answer.codes, strict=False):
            self._refuse_failure(f"the subscription to {topic}", answer, code)

    async def publish(self, topic: str, payload: bytes, properties: Properties) -> None:
        """Sends a message; `settle` tells whether the broker has taken it."""
        try:
            data = encode_publish(topic, payload, properties, MQTT_5)
        except (WireError, ValueError, OverflowError) as error:
            raise BrokerRefusal(f"a message on {topic} fits no MQTT packet: {error}.") from None
        if len(data) > self._max_packet_bytes:
            accepted = f"the broker at {self.place} takes at most {self._max_packet_bytes}"
            raise BrokerRefusal(f"a message on {topic} makes {len(data)} bytes, but {accepted}.")
        await self._send(data)

    async def settle(self) -> None:
        """Returns when the broker has taken all that was sent."""
        for _ in range(2):
            await self._send(encode(Pingreq(), MQTT_5))
            await self._answer(Pingresp)

    async def message(self) -> Publish:
        """The message that comes next."""
        while self._messages.empty():
            try:
                async with asyncio.timeout(ASK_AFTER_S):
                    return await self.while_connected(self._messages.get())
            except TimeoutError:
                await self.settle()
        return self._messages.get_nowait()

    async def while_connected(self, waiting: Coroutine[Any, Any, T]) -> T:
        """What is waited for. If the conversation ends before, an error that says why."""
        task = asyncio.create_task(waiting)
        try:
            await asyncio.wait((task, self._listening), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._listening.result()  # it never ends but by an error
            return await task
        finally:
            task.cancel()

    async def _send(self, data: bytes) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except OSError:
            await asyncio.wait((self._listening,))  # which finds what the broker said at last
            self._listening.result()

    async def _answer(self, kind: type[Answer]) -> Answer:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                answer = await self.while_connected(self._answers.get())
        except TimeoutError:
            problem = f"{self.place} has not answered for {ANSWER_WITHIN_S:g} s."
            raise ConversationEnded(problem) from None
        if not isinstance(answer, kind):
            heard, wanted = type(answer).__name__.upper(), kind.__name__.upper()
            raise BrokerRefusal(f"{self.place} answers with {heard} instead of {wanted}.")
        return answer

    def _refuse_failure(self, what: str, answer: Connack | Suback, code: int) -> None:
        if code >= FIRST_FAILURE:
            problem = f"the broker at {self.place} refuses {what}"
            raise BrokerRefusal(f"{problem}: {_reason(code, answer.properties)}")

    async def _listen(self) -> None:
        """Takes what comes until the conversation ends, which is an error."""
        decoder, loop = PacketDecoder(LARGEST_PACKET, MQTT_5), asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(self._socket, READ_BYTES):
                if decoder.receive(data):
                    while (packet := decoder.next_packet()) is not None:
                        await self._take(packet)
                    decoder.keep_rest()
        except WireError as fault:
            problem = f"{self.place} does not speak MQTT 5: {fault}"
            raise BrokerRefusal(f"{problem}. Is that a broker's MQTT port?") from None
        except OSError as error:
            problem = f"the connection to {self.place} is lost"
            raise ConversationEnded(f"{problem}: {_why(error)}.") from None
        raise ConversationEnded(f"{self.place} has closed the connection.")

    async def _take(self, packet: Packet) -> None:
        if isinstance(packet, Publish):
            await self._messages.put(packet)
        elif isinstance(packet, Disconnect):
            reason = _reason(packet.code, packet.properties)
            stops = packet.code == ReasonCode.SERVER_SHUTTING_DOWN
            kind = ConversationEnded if stops else BrokerRefusal
            raise kind(f"the broker at {self.place} ends the connection: {reason}")
        else:
            self._answers.put_nowait(packet)


async def _connected(host: str, port: int) -> socket.socket:
    """A socket to the first address of this host that takes the connection."""
    loop, problem = asyncio.get_running_loop(), OSError("it has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        try:
            await loop.sock_connect(opened, address)
        except OSError as error:
            problem = error
            opened.close()
        except BaseException:
            opened.close()
            raise
        else:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return opened
    raise problem


def _why(error: OSError) -> str:
    """In the system's words; asyncio has others, and errors about names have their own."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or "it does not answer"


def _reason(code: int, properties: Properties) -> str:
    """Why, in the broker's words; where it gives none, in those of the standard."""
    if reason := properties.reason_string:
        return reason if reason.endswith((".", "?", "!")) else f"{reason}."
    return f"{ReasonCode(code).name.lower().replace('_', ' ')}, code {code:#04x}."
