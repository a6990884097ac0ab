"""What a client is told leaves when the round that it belongs to is on the disk, and not before."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tidings.broker.broker import Broker
from tidings.broker.frames import Interests
from tidings.broker.settings import Settings
from tidings.core.contract import Contract, TopicPolicy, Wish
from tidings.live.clock import wall_clock
from tidings.live.config import Mqtt
from tidings.live.driver import Driver
from tidings.live.mqtt.connection import MqttConnection
from tidings.live.mqtt.deliveries import Deliveries
from tidings.live.mqtt.front import MqttFront
from tidings.live.store import MessageStore, StoreError
from tidings.mqtt.codec import encode
from tidings.mqtt.packets import (
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Pingresp,
    Publish,
    Subscribe,
    TopicFilter,
)
from tidings.traces.live_files import TraceFiles

PING, PONG = encode(Pingreq(), MQTT_5), encode(Pingresp(), MQTT_5)
KEPT = encode(Publish("kept", b"1"), MQTT_5)


class Events(list[tuple[str, bytes]]):
    """What happened to the outside world, in order."""

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self]


class SpiedStore(MessageStore):
    def __init__(self, path: Path, events: Events) -> None:
        super().__init__(path)
        self._events, self.full = events, False

    def commit(self) -> None:
        self._events.append(("commit", b""))
        if self.full:
            raise StoreError("the disk is full")
        super().commit()


class Transport:
    """A client's socket; of what is written, the kernel takes as much as it is told to."""

    def __init__(self, events: Events) -> None:
        self._events, self.buffered_bytes = events, 0

    def get_extra_info(self, name: str) -> Any:
        return self

    def setsockopt(self, *option: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self.buffered_bytes

    def write(self, data: bytes) -> None:
        self._events.append(("write", data))

    def close(self) -> None:
        self._events.append(("close", b""))

    def abort(self) -> None:
        self._events.append(("abort", b""))


class Side:
    """A broker's side of MQTT, of which somebody elsewhere wants what is published on `kept`."""

    def __init__(self, folder: Path, events: Events) -> None:
        policies = (TopicPolicy("kept", Contract(durable=True)),)
        broker = Broker("b", Settings(policies=policies), {"a": None})
        wish = Wish("kept")
        broker.receive("a", Interests(1, "a", 1, 0, 1, (wish,)), 0.0)
        self._events, self.store = events, SpiedStore(folder / "b.journal", events)
        self._trace, self.deliveries = TraceFiles(folder, "run", "b"), Deliveries()
        world = (wall_clock(), self._trace, self.deliveries, self.store)
        self.driver = Driver(broker, *world, lambda: events.append(("fail", b"")))
        self.front = MqttFront(self.driver, self.deliveries, Mqtt(max_unsent_bytes=1_000))

    def connected(self, name: str) -> tuple[MqttConnection, Transport]:
        connection, transport = self.front.accept(), Transport(self._events)
        connection.connection_made(transport)  # type: ignore[arg-type]
        connection.data_received(encode(Connect(MQTT_5, name), MQTT_5))
        return connection, transport

    def close(self) -> None:
        self.driver.close()
        self._trace.close()
        self.store.close()


def happened(folder: Path, act: Any) -> Events:
    """What `act(side, events)` made happen."""
    events = Events()

    async def main() -> None:
        side = Side(folder, events)
        act(side, events)
        seen = Events(events)
        side.close()
        events[:] = seen

    asyncio.run(main())
    return events


def test_an_answer_leaves_when_what_came_before_it_is_on_the_disk(tmp_path: Path) -> None:
    def act(side: Side, events: Events) -> None:
        client, _ = side.connected("c")
        events.clear()
        client.data_received(KEPT + PING)

    assert happened(tmp_path, act) == [("commit", b""), ("write", PONG)]


def test_the_end_of_a_conversation_waits_for_the_disk_too(tmp_path: Path) -> None:
    def act(side: Side, events: Events) -> None:
        client, _ = side.connected("c")
        events.clear()
        client.data_received(KEPT + PING + encode(Disconnect(), MQTT_5))

    assert happened(tmp_path, act).names == ["commit", "write", "close"]


def test_who_takes_another_s_name_ends_it_after_the_commit_of_both(tmp_path: Path) -> None:
    def act(side: Side, events: Events) -> None:
        side.connected("c")
        other, transport = side.front.accept(), Transport(events)
        other.connection_made(transport)  # type: ignore[arg-type]
        events.clear()
        other.data_received(encode(Connect(MQTT_5, "c"), MQTT_5) + KEPT)

    events = happened(tmp_path, act)
    assert events.names == ["commit", "write", "close", "write"]
    assert events[1][1][0] == 0xE0, "DISCONNECT, to the one that had the name"
    assert events[3][1][0] == encode(Connack(), MQTT_5)[0]


@pytest.mark.parametrize("last", [b"", encode(Disconnect(), MQTT_5)])
def test_what_could_not_be_stored_is_answered_neither_then_nor_when_the_broker_ends(
    tmp_path: Path, last: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    def act(side: Side, events: Events) -> None:
        first, _ = side.connected("first")
        side.connected("second")
        first.data_received(encode(Subscribe(1, (TopicFilter("kept"),)), MQTT_5))
        events.clear()
        side.store.full = True
        first.data_received(KEPT + PING + last)
        side.front.stop()

    events = happened(tmp_path, act)
    assert "write" not in events.names, "nobody is told anything any more"
    assert [name for name in events.names if name != "commit"] == ["abort", "fail", "abort"]
    (line,) = caplog.messages
    assert line.startswith("the disk is full")


def test_a_client_that_does_not_read_loses_messages_but_no_answer(tmp_path: Path) -> None:
    def act(side: Side, events: Events) -> None:
        client, transport = side.connected("c")
        client.data_received(encode(Subscribe(1, (TopicFilter("t"),)), MQTT_5))
        transport.buffered_bytes = 2_000
        events.clear()
        client.data_received(encode(Publish("t", b"1"), MQTT_5) + PING)
        assert client.dropped == 1

    assert happened(tmp_path, act) == [("write", PONG)]
