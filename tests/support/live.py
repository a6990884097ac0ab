"""Live brokers inside a test: a background event loop, and MQTT clients that remember."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar

import paho.mqtt.client as paho
import uvloop
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tidings.live.config import parse
from tidings.live.server import LiveBroker

T = TypeVar("T")

PATIENCE_S = 60.0
FIRST_PORT, WORKERS, PORTS_OF_A_WORKER = 20_000, 16, 750


def eventually(holds: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """Waits until something holds; what it was, if it never did."""
    end_at = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < end_at, f"still not so after {within_s} s"
        time.sleep(0.01)
    return found


def _ports_of_this_process() -> Iterator[int]:
    """Below the ports that Linux hands to outgoing connections and to listeners on port 0: one of
    those may be taken by anybody between its choice and its use. Each worker of pytest walks
    through a stretch of its own, again and again."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST_PORT + worker % WORKERS * PORTS_OF_A_WORKER
    return cycle(range(first, first + PORTS_OF_A_WORKER))


def free_ports(count: int) -> list[int]:
    return list(islice(filter(_is_free, _PORTS), count))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


_PORTS = _ports_of_this_process()


class LoopThread:
    """An event loop that runs beside the test."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(doing, self.loop).result(PATIENCE_S)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Overlay:
    """Brokers of a full mesh, in one background event loop."""

    def __init__(self, loop: LoopThread, documents: dict[str, dict[str, Any]]) -> None:
        self._loop, self._documents = loop, documents
        self.brokers: dict[str, LiveBroker] = {}

    def start(self, name: str) -> LiveBroker:
        async def starting() -> LiveBroker:
            broker = LiveBroker(parse(self._documents[name], name))
            await broker.start()
            return broker

        self.brokers[name] = self._loop.run(starting())
        return self.brokers[name]

    def stop(self, name: str) -> None:
        self._loop.run(self.brokers.pop(name).stop())

    def port(self, name: str) -> int:
        return self.brokers[name].mqtt_port

    def status(self, name: str) -> dict[str, Any]:
        async def asking() -> dict[str, Any]:
            return self.brokers[name].status()

        return self._loop.run(asking())

    def until_linked(self) -> None:
        for name, document in self._documents.items():
            wanted = {neighbour["name"] for neighbour in document["neighbour"]}
            eventually(lambda n=name, w=wanted: set(self.status(n)["links"]) == w)  # type: ignore[misc]

    def until_known(self, subscriptions: int) -> None:
        for name in self.brokers:
            eventually(lambda n=name: self.status(n)["subscriptions"] == subscriptions)  # type: ignore[misc]


@contextmanager
def an_overlay(
    folder: Path,
    *names: str,
    emulate: dict[str, Any] | None = None,
    estimate: dict[str, Any] | None = None,
    **fields: Any,
) -> Iterator[Overlay]:
    """Brokers by these names, every pair linked; `fields` go to each broker's configuration."""
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    documents = {}
    for name in names:
        link = {"emulate": emulate, "estimate": estimate}
        neighbours = [{"name": n, "port": ports[n], **link} for n in names if n != name]
        documents[name] = {
            "name": name,
            "mqtt_port": 0,
            "link_port": ports[name],
            "neighbour": neighbours,
            "traces": str(folder / "traces"),
            "flush_s": 0.1,
            **fields,
        }
    loop = LoopThread()
    overlay = Overlay(loop, documents)
    try:
        for name in names:
            overlay.start(name)
        overlay.until_linked()
        yield overlay
    finally:
        for name in list(overlay.brokers):
            overlay.stop(name)
        loop.close()


class PahoClient:
    """A real MQTT client of another make."""

    def __init__(
        self, port: int, name: str = "", version: int = paho.MQTTv5, **connect: Any
    ) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.properties: list[Any] = []
        self.answers: list[Any] = []
        self.disconnected: list[Any] = []
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id=name,
            protocol=version,
            reconnect_on_failure=False,
        )
        will = connect.pop("will", None)
        if will:
            self.client.will_set(*will)
        self.client.on_message = self._heard
        self.client.on_subscribe = lambda _c, _u, _m, codes, props: self.answers.append(
            (codes, props)
        )
        self.client.on_unsubscribe = lambda _c, _u, _m, codes, props: self.answers.append(
            (codes, props)
        )
        self.client.on_disconnect = lambda _c, _u, _f, code, props: self.disconnected.append(
            (code, props)
        )
        self.client.connect("127.0.0.1", port, **connect)
        self.client.loop_start()
        eventually(self.client.is_connected)

    def _heard(self, _client: Any, _user: Any, message: paho.MQTTMessage) -> None:
        self.messages.append((message.topic, message.payload))
        self.properties.append(message.properties)

    def subscribe(self, *topics: str, **pairs: str) -> Any:
        """Subscribes and waits for the answer."""
        before = len(self.answers)
        five = self.client.protocol == paho.MQTTv5
        if five:
            options = [(topic, paho.SubscribeOptions(qos=0)) for topic in topics]
            self.client.subscribe(
                options, properties=_user_properties(PacketTypes.SUBSCRIBE, pairs)
            )
        else:
            self.client.subscribe([(topic, 0) for topic in topics])
        eventually(lambda: len(self.answers) > before)
        return self.answers[-1]

    def publish(self, topic: str, payload: bytes | str = b"", **pairs: str) -> None:
        properties = _user_properties(PacketTypes.PUBLISH, pairs) if pairs else None
        self.client.publish(topic, payload, properties=properties)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def vanish(self) -> None:
        """Loses the connection without a word."""
        sock = self.client.socket()
        self.client.loop_stop()
        if sock is not None:  # or the broker has vanished before
            sock.close()


def _user_properties(kind: int, pairs: dict[str, str]) -> Properties:
    properties = Properties(kind)
    properties.UserProperty = [(name.replace("_", "-"), text) for name, text in pairs.items()]
    return properties
