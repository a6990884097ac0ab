"""Who publishes and subscribes in a live run? MQTT 5 clients, one connection each, on our codec.

A client connects, subscribes and stays; when its broker goes away it tries to connect again until
it can. Contracts are stated as any MQTT 5 client would state them, in user properties.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from math import inf

from msgspec import Struct

from tidings.core.contract import Contract, Subscription
from tidings.core.topic import matches
from tidings.live.clock import Clock
from tidings.mqtt.codec import PacketDecoder, encode, encode_publish
from tidings.mqtt.contracts import user_properties_of
from tidings.mqtt.packets import (
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    TopicFilter,
)
from tidings.mqtt.properties import Properties, UserProperties
from tidings.mqtt.reasons import FIRST_FAILURE
from tidings.testbed.punctuality import NUMBER_BYTES, Punctuality

RETRY_S = 0.1
CONNECT_WITHIN_S = 5.0
READ_BYTES = 65_536

Address = tuple[str, int]


class Outgoing(Struct, frozen=True, gc=False):
    """A message that somebody is going to publish."""

    at: float
    packet: bytes
    topic: str
    contract: Contract
    properties: UserProperties
    is_followed: bool  # whether its payload has room for a number; see `punctuality`


class TrafficClient:
    """One MQTT 5 connection that is made again whenever it is lost."""

    def __init__(
        self,
        name: str,
        place: Address,
        wishes: Iterable[Subscription] = (),
        arrived: Callable[[int, float], None] = lambda number, deadline_s: None,
    ) -> None:
        """`arrived` hears the number of every message, and by when this client wanted it."""
        self.name, self._place, self._wishes = name, place, list(wishes)
        self._arrived, self._deadlines_s = arrived, dict[str, float]()
        self.received = 0  # messages
        self.refused = ""  # why a subscription was not granted
        self.ready = asyncio.Event()  # connected, and all subscriptions granted
        self._writer: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        """Stays connected until cancelled."""
        while True:
            try:
                await self._converse()
            except OSError:
                pass  # the broker is down, which may be part of the scenario
            finally:
                self.ready.clear()
                self._hang_up()
            await asyncio.sleep(RETRY_S)

    def is_connected(self) -> bool:
        return self._writer is not None and self.ready.is_set()

    def publish(self, packet: bytes) -> None:
        assert self._writer is not None, "only who is connected can publish"
        self._writer.write(packet)

    async def _converse(self) -> None:
        async with asyncio.timeout(CONNECT_WITHIN_S):
            reader, self._writer = await asyncio.open_connection(*self._place)
        decoder, granted = PacketDecoder(version=MQTT_5), 0
        self._writer.write(encode(Connect(MQTT_5, self.name), MQTT_5))
        self._writer.writelines(_subscribe(n, w) for n, w in enumerate(self._wishes, start=1))
        while data := await reader.read(READ_BYTES):
            for packet in _packets(decoder, data):
                if isinstance(packet, Publish):
                    self._receive(packet)
                elif isinstance(packet, Connack | Suback):
                    granted += self._granted(packet)
            if granted == len(self._wishes) + 1:
                self.ready.set()

    def _receive(self, message: Publish) -> None:
        self.received += 1
        if len(message.payload) >= NUMBER_BYTES:
            deadline_s = self._deadlines_s.get(message.topic) or self._deadline_s(message.topic)
            self._arrived(int.from_bytes(message.payload[-NUMBER_BYTES:]), deadline_s)

    def _deadline_s(self, topic: str) -> float:
        """By when it wants messages of this topic; the longest time, if it has asked twice."""
        asked = [w.contract.deadline_s for w in self._wishes if matches(w.topic, topic)]
        self._deadlines_s[topic] = deadline_s = max(asked, default=inf)
        return deadline_s

    def _granted(self, answer: Connack | Suback) -> int:
        code = max(answer.codes) if isinstance(answer, Suback) else answer.code
        if code >= FIRST_FAILURE:
            reason = answer.properties.reason_string
            self.refused = f"client {self.name} was refused with code {code:#04x}: {reason}"
        return 1

    def _hang_up(self) -> None:
        if self._writer is not None:
            if not self._writer.is_closing():
                self._writer.write(encode(Disconnect(), MQTT_5))
            self._writer.close()
            self._writer = None


class Traffic:
    """All clients of a run."""

    def __init__(self, clock: Clock, punctuality: Punctuality | None = None) -> None:
        self._clock, self.punctuality = clock, punctuality or Punctuality((), ())
        self.clients: list[TrafficClient] = []
        self.published = self.unpublished = 0
        self._connections: list[asyncio.Task[None]] = []
        self._publishing: list[asyncio.Task[None]] = []

    def connect(
        self, name: str, place: Address, wishes: Iterable[Subscription] = ()
    ) -> TrafficClient:
        client = TrafficClient(name, place, wishes, self._arrived)
        self.clients.append(client)
        self._connections.append(asyncio.create_task(client.run()))
        return client

    async def ready(self, within_s: float = 1.0) -> bool:
        """Whether every client gets its answers within this time."""
        try:
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(client.ready.wait() for client in self.clients))
        except TimeoutError:
            return False
        return True

    def refused(self) -> str:
        """Why some client did not get what it asked for; empty if all did."""
        return "; ".join(client.refused for client in self.clients if client.refused)

    @property
    def received(self) -> int:
        return sum(client.received for client in self.clients)

    def start_publishing(self, client: TrafficClient, messages: Iterator[Outgoing]) -> None:
        """Has a client send these messages, each at its instant."""
        self._publishing.append(asyncio.create_task(self._keep_publishing(client, messages)))

    def stop_publishing(self) -> None:
        """Nothing more is published; subscribers stay."""
        for publishing in self._publishing:
            publishing.cancel()

    async def stop(self) -> None:
        """Everybody leaves."""
        self.stop_publishing()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._publishing, *self._connections, return_exceptions=True)

    async def _keep_publishing(self, client: TrafficClient, messages: Iterator[Outgoing]) -> None:
        for message in messages:
            in_s = message.at - self._clock()
            if in_s > 0:
                await asyncio.sleep(in_s)
            if client.is_connected():
                client.publish(self._numbered(message))
                self.published += 1
            else:
                self.unpublished += 1

    def _numbered(self, message: Outgoing) -> bytes:
        """Its packet, with a number at the end, where the payload is."""
        if not message.is_followed:
            return message.packet
        told = (message.topic, message.contract, message.properties)
        number = self.punctuality.expect(*told, self._clock())
        return message.packet[:-NUMBER_BYTES] + number.to_bytes(NUMBER_BYTES)

    def _arrived(self, number: int, deadline_s: float) -> None:
        self.punctuality.arrived(number, deadline_s, self._clock())


def publication(
    topic: str, payload: bytes, contract: Contract, pairs: UserProperties = ()
) -> bytes:
    """A PUBLISH packet under a contract, with user properties."""
    properties = Properties(user_properties=(*user_properties_of(contract), *pairs))
    return encode_publish(topic, payload, properties, MQTT_5)


def _subscribe(packet_id: int, wish: Subscription) -> bytes:
    properties = Properties(user_properties=user_properties_of(wish.contract, wish.where))
    return encode(Subscribe(packet_id, (TopicFilter(wish.topic),), properties), MQTT_5)


def _packets(decoder: PacketDecoder, data: bytes) -> Iterator[Packet]:
    if decoder.receive(data):
        while (packet := decoder.next_packet()) is not None:
            yield packet
        decoder.keep_rest()
