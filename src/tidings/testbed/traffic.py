"""Who publishes and subscribes in a live run? MQTT 5 clients, one connection each, on our codec.

A client connects, subscribes and stays; when its broker goes away it tries to connect again until
it can. Contracts are stated as any MQTT 5 client would state them, in user properties.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from tidings.core.contract import Contract, Subscription
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

RETRY_S = 0.1
CONNECT_WITHIN_S = 5.0
READ_BYTES = 65_536

Address = tuple[str, int]


class TrafficClient:
    """One MQTT 5 connection that is made again whenever it is lost."""

    def __init__(self, name: str, place: Address, wishes: Iterable[Subscription] = ()) -> None:
        self.name, self._place, self._wishes = name, place, list(wishes)
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

    def publish(self, data: bytes) -> bool:
        """Sends an encoded packet; false if there is no connection."""
        if self._writer is None or not self.ready.is_set():
            return False
        self._writer.write(data)
        return True

    async def _converse(self) -> None:
        async with asyncio.timeout(CONNECT_WITHIN_S):
            reader, self._writer = await asyncio.open_connection(*self._place)
        decoder, granted = PacketDecoder(version=MQTT_5), 0
        self._writer.write(encode(Connect(MQTT_5, self.name), MQTT_5))
        self._writer.writelines(_subscribe(n, w) for n, w in enumerate(self._wishes, start=1))
        while data := await reader.read(READ_BYTES):
            for packet in _packets(decoder, data):
                if isinstance(packet, Publish):
                    self.received += 1
                elif isinstance(packet, Connack | Suback):
                    granted += self._granted(packet)
            if granted == len(self._wishes) + 1:
                self.ready.set()

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

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.clients: list[TrafficClient] = []
        self.published = self.unpublished = 0
        self._connections: list[asyncio.Task[None]] = []
        self._publishing: list[asyncio.Task[None]] = []

    def connect(
        self, name: str, place: Address, wishes: Iterable[Subscription] = ()
    ) -> TrafficClient:
        client = TrafficClient(name, place, wishes)
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

    def start_publishing(
        self, client: TrafficClient, packets: Iterator[tuple[float, bytes]]
    ) -> None:
        """Has a client send these packets, each at its instant."""
        self._publishing.append(asyncio.create_task(self._keep_publishing(client, packets)))

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

    async def _keep_publishing(
        self, client: TrafficClient, packets: Iterator[tuple[float, bytes]]
    ) -> None:
        for at, data in packets:
            in_s = at - self._clock()
            if in_s > 0:
                await asyncio.sleep(in_s)
            if client.publish(data):
                self.published += 1
            else:
                self.unpublished += 1


def publication(
    topic: str, payload: bytes, contract: Contract, pairs: UserProperties = ()
) -> bytes:
    """A PUBLISH packet under a contract, with user properties."""
    properties = Properties(user_properties=(*user_properties_of(contract), *pairs))
    return encode_publish(topic, payload, properties, MQTT_5)


def client_name(wish: Subscription) -> str:
    """The client whose subscription this is; see `core.contract.subscription_id`."""
    return wish.id[len(wish.broker) + 1 : -len(wish.topic) - 1]


def _subscribe(packet_id: int, wish: Subscription) -> bytes:
    properties = Properties(user_properties=user_properties_of(wish.contract, wish.where))
    return encode(Subscribe(packet_id, (TopicFilter(wish.topic),), properties), MQTT_5)


def _packets(decoder: PacketDecoder, data: bytes) -> Iterator[Packet]:
    if decoder.receive(data):
        while (packet := decoder.next_packet()) is not None:
            yield packet
        decoder.keep_rest()
