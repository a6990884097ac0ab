"""What a broker holds in memory, seen from outside: little, whatever one client does."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.broker_programs import WITHIN_S, BrokerProgram, a_line_of
from support.live import eventually

from tidings.live.config import BrokerConfig
from tidings.mqtt.codec import PacketDecoder, encode
from tidings.mqtt.packets import (
    MQTT_5,
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
from tidings.mqtt.reasons import ReasonCode
from tidings.traces.files import parquet_files

# More than at its start: all caches, and what is on its way.
CEILING_BYTES = 150 << 20
LONG_TOPICS, LONG_STATEMENTS, LONG_FILTERS = 1_500, 400, 2_000


def long_topics() -> Iterator[bytes]:
    for number in range(LONG_TOPICS):
        yield encode(Publish(f"{number}/" + "x" * 65_000, b""), MQTT_5)


def long_statements() -> Iterator[bytes]:
    for number in range(LONG_STATEMENTS):
        pairs = tuple((f"{number}-{pair}", "x" * 60_000) for pair in range(10))
        yield encode(Publish("t", b"", Properties(user_properties=pairs)), MQTT_5)


def long_filters() -> Iterator[bytes]:
    for number in range(LONG_FILTERS):
        wanted = (TopicFilter(f"{number}/" + "x" * 65_000),)
        yield encode(Subscribe(1 + number, wanted), MQTT_5)


@pytest.fixture
def broker(tmp_path: Path) -> BrokerProgram:
    config = BrokerConfig(name="n1", mqtt_port=0, traces=str(tmp_path), flush_s=0.1)
    program = BrokerProgram(config, tmp_path)
    program.start()
    return program


class Abuser:
    """A client that says long things, and listens now and then."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self._decoder = PacketDecoder(version=MQTT_5)
        self.codes = set[int]()  # of its subscriptions
        self.say(encode(Connect(MQTT_5, "abuser"), MQTT_5))
        self.wait()

    def say(self, packet: bytes) -> None:
        self._socket.sendall(packet)

    def wait(self) -> None:
        """Until all that was said before was taken."""
        self.say(encode(Pingreq(), MQTT_5))
        while Pingresp not in map(type, self._packets()):
            pass

    def end(self) -> None:
        self.say(encode(Disconnect(), MQTT_5))
        self._socket.close()

    def _packets(self) -> list[Packet]:
        heard = self._socket.recv(65_536)
        assert heard, "the broker has ended the connection"
        packets = list[Packet]()
        if self._decoder.receive(heard):
            while (packet := self._decoder.next_packet()) is not None:
                packets.append(packet)
            self._decoder.keep_rest()
        for packet in packets:
            self.codes |= set(packet.codes) if isinstance(packet, Suback) else set()
        return packets


@pytest.mark.parametrize("abuse", [long_topics, long_statements, long_filters])
def test_no_client_fills_the_memory_with_what_is_long(
    broker: BrokerProgram, abuse: Callable[[], Iterator[bytes]]
) -> None:
    client = Abuser(broker.ready()["mqtt_port"])
    before_bytes = broker.memory_bytes()
    for number, packet in enumerate(abuse()):
        client.say(packet)
        if number % 100 == 0:
            client.wait()
    client.wait()
    eventually(lambda: broker.memory_bytes() - before_bytes < CEILING_BYTES, 60)
    refused = {ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED}
    assert client.codes == (refused if abuse is long_filters else set())
    client.end()
    assert broker.end() == 0


def test_a_broker_that_has_written_its_trace_has_not_loaded_arrow(tmp_path: Path) -> None:
    programs = a_line_of(tmp_path, "n1", "n2")
    for program in programs.values():
        program.start()
    changed = tmp_path / "traces" / "link_changed"
    eventually(lambda: len(list(parquet_files(changed))) >= 2, WITHIN_S)  # one of each
    for program in programs.values():
        loaded = program.loaded()
        assert "msgspec" in loaded
        assert not [name for name in ("pyarrow", "libarrow", "pandas", "pyspark") if name in loaded]
    for program in programs.values():
        program.end()
