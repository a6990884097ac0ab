"""Our own client against a live broker, and against those that are none."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.live import Overlay, an_overlay, free_ports

from tidings.client.connection import (
    BrokerRefusal,
    BrokerUnreachable,
    ConversationEnded,
    MqttClient,
)
from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_5, Connack, Disconnect, Pingresp
from tidings.mqtt.properties import NO_PROPERTIES, Properties

HOST = "127.0.0.1"


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Overlay]:
    with an_overlay(tmp_path, "n1", mqtt={"max_packet_bytes": 1000}) as one:
        yield one


@pytest.fixture
def port(overlay: Overlay) -> int:
    return overlay.port("n1")


@contextmanager
def a_server(answer: bytes, stays: bool) -> Iterator[int]:
    """The port of one that gives this answer, and then says nothing more or goes."""

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1000)
            client.sendall(answer)
            while stays and client.recv(1000):
                pass

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def stating(**pairs: str) -> Properties:
    return Properties(user_properties=tuple((n.replace("_", "-"), v) for n, v in pairs.items()))


def test_what_is_published_arrives_in_order_with_its_properties(port: int) -> None:
    async def conversation() -> list[tuple[str, bytes, Properties]]:
        async with MqttClient(HOST, port) as listener, MqttClient(HOST, port) as speaker:
            await listener.subscribe(["a/+", "b"], stating(deadline_ms="60000"))
            for number in range(2_000):  # more than a client keeps unread
                await speaker.publish(f"a/{number}", b"%d" % number, stating(colour="blue"))
            await speaker.settle()
            heard = [await listener.message() for _ in range(2_000)]
            return [(message.topic, message.payload, message.properties) for message in heard]

    wanted = [(f"a/{n}", b"%d" % n, stating(colour="blue")) for n in range(2_000)]
    assert asyncio.run(conversation()) == wanted


def test_a_subscription_is_refused_in_the_brokers_words(port: int) -> None:
    async def conversation() -> None:
        async with MqttClient(HOST, port) as client:
            await client.subscribe(["a"], stating(where="height <"))

    with pytest.raises(BrokerRefusal, match="refuses the subscription to a: bad where predicate"):
        asyncio.run(conversation())


def test_a_publication_is_refused_in_the_brokers_words_before_it_settles(port: int) -> None:
    async def conversation() -> None:
        async with MqttClient(HOST, port) as client:
            await client.publish("a", b"", stating(strategy="dtree"))
            await client.settle()

    with pytest.raises(BrokerRefusal, match=r"strategy is 'dtree'.*Did you mean 'd-tree'\?$"):
        asyncio.run(conversation())


def test_the_brokers_last_words_are_heard_by_one_who_goes_on_talking(port: int) -> None:
    async def conversation() -> None:
        async with MqttClient(HOST, port) as client:
            await client.publish("a", b"", stating(late="maybe"))
            while True:
                await client.publish("a", bytes(900), NO_PROPERTIES)

    with pytest.raises(BrokerRefusal, match="accepted is: deliver or drop"):
        asyncio.run(conversation())


def test_a_message_that_is_too_large_for_the_broker_is_not_sent(port: int) -> None:
    async def conversation() -> None:
        async with MqttClient(HOST, port) as client:
            with pytest.raises(BrokerRefusal, match="takes at most 1000"):
                await client.publish("a", bytes(1000), NO_PROPERTIES)
            with pytest.raises(BrokerRefusal, match="fits no MQTT packet"):
                await client.publish("x" * 70_000, b"", NO_PROPERTIES)
            await client.settle()

    asyncio.run(conversation())


def test_a_broker_that_stops_ends_the_waiting(overlay: Overlay, port: int) -> None:
    async def conversation() -> None:
        async with MqttClient(HOST, port) as client:
            await client.subscribe(["a"], NO_PROPERTIES)
            stopping = asyncio.to_thread(overlay.stop, "n1")
            await asyncio.gather(client.message(), stopping)

    with pytest.raises(ConversationEnded, match="the broker is shutting down"):
        asyncio.run(conversation())


def test_where_nobody_listens_the_place_and_the_reason_are_named() -> None:
    [port] = free_ports(1)

    async def conversation(host: str) -> None:
        async with MqttClient(host, port):
            pass

    with pytest.raises(BrokerUnreachable, match=f"no broker is at {HOST}:{port}: Connection ref"):
        asyncio.run(conversation(HOST))
    with pytest.raises(BrokerUnreachable, match="no broker is at no-such-host"):
        asyncio.run(conversation("no-such-host.invalid"))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "Is that a broker's MQTT port?"),
        (b"", "has closed the connection. Is that a broker's MQTT port?"),
        (b"\x20\x02\x00\x01", "does not speak MQTT 5"),  # 3.1.1 only
        (encode(Pingresp(), MQTT_5), "PINGRESP instead of CONNACK"),
        (encode(Connack(0x87), MQTT_5), "not authorised, code 0x87."),
        (
            encode(Disconnect(0x89, Properties(reason_string="come back later")), MQTT_5),
            "ends the connection: come back later.",
        ),
    ],
)
def test_what_is_no_broker_or_refuses_us_is_told_apart(answer: bytes, problem: str) -> None:
    async def conversation() -> None:
        with a_server(answer, stays=False) as port:
            async with MqttClient(HOST, port):
                pass

    with pytest.raises(BrokerRefusal, match=re.escape(problem)):
        asyncio.run(conversation())


def test_a_broker_that_falls_silent_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def conversation() -> None:
        with a_server(encode(Connack(), MQTT_5), stays=True) as port:
            async with MqttClient(HOST, port) as client:
                monkeypatch.setattr("tidings.client.connection.ANSWER_WITHIN_S", 0.01)
                monkeypatch.setattr("tidings.client.connection.ASK_AFTER_S", 0.01)
                await client.message()

    with pytest.raises(ConversationEnded, match="has not answered for"):
        asyncio.run(conversation())
