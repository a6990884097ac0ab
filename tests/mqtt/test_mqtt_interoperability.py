"""Real clients against a session: paho in both versions, and Mosquitto's tools where installed."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from queue import Queue

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tidings.mqtt.codec import encode_publish
from tidings.mqtt.packets import Connect, Publish, Subscribe, Unsubscribe
from tidings.mqtt.session import Closed, Request, Session

PATIENCE_S = 30.0
VERSIONS = {paho.MQTTv311: "mqttv311", paho.MQTTv5: "mqttv5"}


class Echo(asyncio.Protocol):
    """The smallest front there can be: everyone hears what they subscribed to."""

    def __init__(self, everyone: list[Echo], subscribed: Queue[str]) -> None:
        self.everyone, self.subscribed, self.topics = everyone, subscribed, set[str]()
        self.session = Session(0.0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.everyone.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.everyone.remove(self)
        self.carry_out(self.session.lost())

    def data_received(self, data: bytes) -> None:
        self.carry_out(self.session.feed(data, 0.0))
        self.transport.write(self.session.outgoing())

    def carry_out(self, requests: list[Request]) -> None:
        for request in requests:
            match request:
                case Connect():
                    self.carry_out(self.session.accept(0.0, None if request.client_id else "you"))
                case Publish():
                    self.publish(request)
                case Subscribe():
                    self.topics |= {wanted.topic for wanted in request.filters}
                    self.session.suback(request.packet_id, [0] * len(request.filters))
                    self.subscribed.put(request.filters[0].topic)
                case Unsubscribe():
                    self.topics -= set(request.topics)
                    self.session.unsuback(request.packet_id, [0] * len(request.topics))
                case Closed():
                    if request.will is not None:
                        self.publish(request.will)
                    self.transport.write(self.session.outgoing())
                    self.transport.close()

    def publish(self, message: Publish) -> None:
        for one in self.everyone:
            if any(paho.topic_matches_sub(topic, message.topic) for topic in one.topics):
                version = one.session.version
                one.transport.write(
                    encode_publish(message.topic, message.payload, message.properties, version)
                )


class Server:
    """Where the clients connect to, and what was subscribed, to wait for it."""

    def __init__(self) -> None:
        self.subscribed: Queue[str] = Queue()
        self.port = 0

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        everyone: list[Echo] = []
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Echo(everyone, self.subscribed), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        for one in list(everyone):
            one.transport.abort()
        await asyncio.sleep(0)


@pytest.fixture
def server() -> Iterator[Server]:
    found, ready, loop = Server(), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(found.serve(ready, stop),))
    thread.start()
    assert ready.wait(PATIENCE_S)
    yield found
    loop.call_soon_threadsafe(stop.set)
    thread.join(PATIENCE_S)
    loop.close()


class Client:
    """A paho client with its callbacks turned into queues."""

    def __init__(self, server: Server, version: int, will: str | None = None) -> None:
        self.messages: Queue[paho.MQTTMessage] = Queue()
        self.answers: Queue[list[int]] = Queue()
        self.gone: Queue[int] = Queue()
        connected: Queue[tuple[int, PahoProperties | None]] = Queue()
        self.paho = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=version)
        self.paho.on_message = lambda client, data, message: self.messages.put(message)
        self.paho.on_subscribe = lambda client, data, mid, codes, properties: self.answers.put(
            [code.value for code in codes]
        )
        self.paho.on_disconnect = lambda client, data, flags, code, properties: self.gone.put(
            code.value
        )
        self.paho.on_connect = lambda client, data, flags, code, properties: connected.put(
            (code.value, properties)
        )
        if will is not None:
            self.paho.will_set(will, b"gone")
        self.paho.connect("127.0.0.1", server.port, keepalive=30)
        self.paho.loop_start()
        self.code, self.offer = connected.get(timeout=PATIENCE_S)


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def build(version: int, will: str | None = None) -> Client:
        clients.append(Client(server, version, will))
        return clients[-1]

    yield build
    for client in clients:
        client.paho.disconnect()
        client.paho.loop_stop()


@pytest.mark.parametrize("subscriber_version", VERSIONS, ids=VERSIONS.values())
@pytest.mark.parametrize("publisher_version", VERSIONS, ids=VERSIONS.values())
def test_paho_clients_of_both_versions_hear_each_other(
    connect, publisher_version: int, subscriber_version: int
) -> None:
    subscriber, publisher = connect(subscriber_version), connect(publisher_version)
    assert subscriber.code == publisher.code == 0
    subscriber.paho.subscribe("height/+/now", qos=1)
    assert subscriber.answers.get(timeout=PATIENCE_S) == [0]
    for number in range(200):
        publisher.paho.publish("height/7/now", b"%d" % number)
    heard = [subscriber.messages.get(timeout=PATIENCE_S) for _ in range(200)]
    assert [int(message.payload) for message in heard] == list(range(200))
    assert {(message.topic, message.qos) for message in heard} == {("height/7/now", 0)}


def test_a_paho_client_of_5_sends_and_hears_properties(connect) -> None:
    client = connect(paho.MQTTv5)
    assert client.offer.MaximumQoS == 0
    assert client.offer.AssignedClientIdentifier == "you"
    wish = PahoProperties(PacketTypes.SUBSCRIBE)
    wish.UserProperty = [("where", "height < 3000")]
    client.paho.subscribe("a", options=SubscribeOptions(qos=2), properties=wish)
    assert client.answers.get(timeout=PATIENCE_S) == [0]
    extras = PahoProperties(PacketTypes.PUBLISH)
    extras.UserProperty = [("deadline-ms", "50"), ("kind", "jet")]
    extras.MessageExpiryInterval = 60
    extras.ContentType = "text/plain"
    extras.CorrelationData = b"\x01"
    client.paho.publish("a", b"hi", properties=extras)
    heard = client.messages.get(timeout=PATIENCE_S).properties
    assert heard.UserProperty == [("deadline-ms", "50"), ("kind", "jet")]
    assert (heard.MessageExpiryInterval, heard.ContentType) == (60, "text/plain")
    assert heard.CorrelationData == b"\x01"


@pytest.mark.parametrize("version", VERSIONS, ids=VERSIONS.values())
def test_a_paho_client_that_vanishes_leaves_its_will(connect, version: int) -> None:
    watcher, victim = connect(version), connect(version, will="wills/victim")
    watcher.paho.subscribe("wills/#")
    watcher.answers.get(timeout=PATIENCE_S)
    victim.paho.loop_stop()
    victim.paho.socket().close()
    assert watcher.messages.get(timeout=PATIENCE_S).payload == b"gone"


def test_a_paho_client_of_5_is_told_why_it_is_cut_off(server: Server, connect) -> None:
    client = connect(paho.MQTTv5)
    raw = PahoProperties(PacketTypes.PUBLISH)
    raw.TopicAlias = 1
    client.paho.publish("a", b"", properties=raw)
    assert client.gone.get(timeout=PATIENCE_S) == 0x94


@pytest.mark.skipif(
    not (shutil.which("mosquitto_sub") and shutil.which("mosquitto_pub")),
    reason="mosquitto_sub and mosquitto_pub are not installed",
)
@pytest.mark.parametrize("version", VERSIONS.values())
def test_mosquitto_clients_publish_and_subscribe(server: Server, version: str) -> None:
    where = ["-h", "127.0.0.1", "-p", str(server.port), "-V", version]
    command = ["mosquitto_sub", *where, "-t", "a/#", "-C", "2", "-F", "%t %p", "-W", "30"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as subscriber:
        server.subscribed.get(timeout=PATIENCE_S)
        extras = ["-D", "publish", "user-property", "price", "2"] if version == "mqttv5" else []
        for word in ("one", "two"):
            publish = ["mosquitto_pub", *where, "-t", "a/b", "-m", word, *extras]
            subprocess.run(publish, check=True, timeout=PATIENCE_S)
        heard, _ = subscriber.communicate(timeout=2 * PATIENCE_S)
    assert heard.splitlines() == ["a/b one", "a/b two"]
    assert subscriber.returncode == 0
