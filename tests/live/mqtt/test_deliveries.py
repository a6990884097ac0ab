"""Runs of messages reach their clients in order, and back-pressure is a call."""

import asyncio
from collections.abc import Sequence
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.broker.effects import Deliver, Send
from tidings.broker.frames import Ack, Data
from tidings.core.message import Envelope, Message
from tidings.live.links.wire import HIGH_WATER_BYTES, Wire
from tidings.live.mqtt.deliveries import Deliveries
from tidings.mqtt.codec import encode_publish
from tidings.mqtt.packets import MQTT_3_1_1, MQTT_5
from tidings.mqtt.properties import NO_PROPERTIES, Properties


class Recipient:
    def __init__(self, version: int, max_packet_bytes: float = inf) -> None:
        self.version, self.max_packet_bytes = version, max_packet_bytes
        self.outbox, self.read, self.messages = b"", b"", 0

    def offer(self, data: bytes, messages: int) -> None:
        self.outbox += data
        self.messages += messages

    def flush(self) -> None:
        self.read, self.outbox = self.read + self.outbox, b""


def message(number: int, size_bytes: int = 1) -> Message:
    return Message(number, f"t/{number}", bytes(size_bytes), properties=(("n", str(number)),))


def packet(said: Message, version: int) -> bytes:
    stated = Properties(user_properties=said.properties) if version == MQTT_5 else NO_PROPERTIES
    return encode_publish(said.topic, said.payload, stated, version)


takers = st.sets(st.integers(0, 4)).map(sorted).filter(bool)


@given(st.lists(st.one_of(takers, st.none()), max_size=12))
def test_each_client_gets_its_messages_once_and_in_order(
    rounds: list[Sequence[int] | None],
) -> None:
    """A round is delivered to some of five clients; None ends a read."""
    deliveries = Deliveries()
    clients = [Recipient((MQTT_3_1_1, MQTT_5)[n % 2]) for n in range(5)]
    for number, client in enumerate(clients):
        deliveries.enlist(f"n1/{number}:t", client, echo=True)
    expected = [b""] * 5
    for number, taking in enumerate(rounds):
        if taking is None:
            deliveries.flush()
            assert [client.read for client in clients] == expected
            continue
        said = message(number)
        deliveries.add(Deliver(tuple(f"n1/{taker}:t" for taker in taking), said, 0.0))
        for taker in taking:
            expected[taker] += packet(said, clients[taker].version)
    deliveries.flush()
    assert [client.read for client in clients] == expected


def test_a_packet_too_large_for_a_client_is_spared_it() -> None:
    deliveries, small, large = Deliveries(), Recipient(MQTT_3_1_1, 50), Recipient(MQTT_3_1_1)
    for name, client in (("small", small), ("large", large)):
        deliveries.enlist(name, client, echo=True)
    said = [message(1), message(2, size_bytes=100), message(3)]
    for one in said:
        deliveries.add(Deliver(("large", "small"), one, 0.0))
    deliveries.flush()
    assert large.read == b"".join(packet(one, MQTT_3_1_1) for one in said)
    assert small.read == packet(said[0], MQTT_3_1_1) + packet(said[2], MQTT_3_1_1)
    assert (small.messages, large.messages) == (2, 3)


@pytest.mark.parametrize(
    ("bad", "age_s"),
    [
        (Message(2, "t/2", b"", properties=(("n", "x" * 70_000),)), 0.0),
        (Message(2, "t/2", b"", properties=(("\ud800", "x"),)), 0.0),
        (Message(2, "t/2", b"", headers=b"\xff garbage"), 0.0),
        (Message(2, "t/2", b"", headers=b"\x02\x00\x00\x00\x09"), nan),  # its expiry, 9 s
        (Message(2, "t/2", b"", headers=b"\x02\x00\x00\x00\x09"), inf),
    ],
)
def test_a_message_that_fits_no_packet_is_skipped_counted_and_never_tried_again(
    bad: Message, age_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    deliveries, client = Deliveries(), Recipient(MQTT_5)
    deliveries.enlist("all", client, echo=True)
    for one in (message(1), bad, message(3)):
        deliveries.add(Deliver(("all",), one, age_s if one is bad else 0.0))
    deliveries.flush()
    deliveries.flush()
    assert client.read == packet(message(1), MQTT_5) + packet(message(3), MQTT_5)
    assert (client.messages, deliveries.unfit.count) == (2, 1)
    (line,) = caplog.messages
    assert "message 2 on 't/2' fits no MQTT packet" in line


def test_a_run_of_nothing_but_unfit_messages_is_no_trouble() -> None:
    deliveries, client = Deliveries(), Recipient(MQTT_5)
    deliveries.enlist("all", client, echo=True)
    deliveries.add(Deliver(("all",), Message(1, "t" * 70_000, b""), 0.0))
    deliveries.flush()
    assert (client.read, client.messages, deliveries.unfit.count) == (b"", 0, 1)


class Transport:
    """A socket of which the kernel takes nothing until it is told to."""

    def __init__(self) -> None:
        self.buffered_bytes = 0

    def write(self, data: bytes) -> None:
        self.buffered_bytes += len(data)

    def get_write_buffer_size(self) -> int:
        return self.buffered_bytes

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == HIGH_WATER_BYTES


def parcel(number: int, size_bytes: int) -> Send:
    said = Message(number, "t", bytes(size_bytes))
    return Send("n2", Data(number, Envelope(said, 0.0, (), (), "d-tree")), size_bytes, 1)


def test_a_wire_tells_its_room_when_credit_runs_low_and_again_when_the_socket_has_drained() -> None:
    async def main() -> None:
        rooms: list[float] = []
        dirty: list[Wire] = []
        transport, wire = Transport(), Wire("n2", lambda _, room: rooms.append(room), dirty)
        wire.send(parcel(0, 10), 0.0)
        assert dirty == [], "without a connection, what is sent is lost"
        wire.connected(transport)  # type: ignore[arg-type]
        wire.open()
        for number in range(3):
            wire.send(parcel(number, 10_000), 0.0)
        assert (dirty, transport.buffered_bytes) == ([wire], 0)
        wire.flush()
        await asyncio.sleep(0)
        assert rooms == [HIGH_WATER_BYTES], "more than half of the credit is left"
        wire.send(parcel(4, 10_000), 0.0)
        wire.flush()
        await asyncio.sleep(0)
        assert rooms[1:] == [HIGH_WATER_BYTES - transport.buffered_bytes]
        wire.paused = True
        wire.send(parcel(5, 60_000), 0.0)
        wire.flush()
        await asyncio.sleep(0)
        assert len(rooms) == 2, "a paused socket has no room to tell of"
        transport.buffered_bytes = 0
        wire.resume()
        assert rooms[2:] == [HIGH_WATER_BYTES]

    asyncio.run(main())


def test_control_frames_cost_no_credit() -> None:
    async def main() -> None:
        rooms: list[float] = []
        wire = Wire("n2", lambda _, room: rooms.append(room), [])
        wire.connected(Transport())  # type: ignore[arg-type]
        wire.open()
        for number in range(10_000):
            wire.send(Send("n2", Ack((number,)), 64, 1), 0.0)
        wire.flush()
        await asyncio.sleep(0)
        assert rooms == [HIGH_WATER_BYTES]

    asyncio.run(main())
