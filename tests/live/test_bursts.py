"""However fast a publisher is, nothing is lost on a healthy link for want of room: it is slowed."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from support.live import an_overlay, eventually

from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_3_1_1, Connect, Publish, Subscribe, TopicFilter
from tidings.traces.headline import read_tables

MESSAGES = 30_000  # three times what a queue holds
PAYLOAD_BYTES = 100


def connected(port: int, name: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(encode(Connect(MQTT_3_1_1, name), MQTT_3_1_1))
    assert client.recv(4) == b"\x20\x02\x00\x00"
    return client


class Counting:
    """A subscriber that reads all it can, in a thread of its own, and counts whole messages."""

    def __init__(self, port: int, packet_bytes: int) -> None:
        self._client, self._packet_bytes, self._received = (
            connected(port, "reader"),
            packet_bytes,
            0,
        )
        self._client.sendall(encode(Subscribe(1, (TopicFilter("t"),)), MQTT_3_1_1))
        assert self._client.recv(5)[:1] == b"\x90"
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    @property
    def messages(self) -> int:
        return self._received // self._packet_bytes

    def close(self) -> None:
        self._client.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._client.close()

    def _read(self) -> None:
        while data := self._client.recv(1 << 20):
            self._received += len(data)


def test_a_burst_of_three_times_the_queue_crosses_a_hop_whole(tmp_path: Path) -> None:
    packet = encode(Publish("t", bytes(PAYLOAD_BYTES)), MQTT_3_1_1)
    with an_overlay(tmp_path, "b1", "b2") as overlay:
        overlay.until_linked()
        reader = Counting(overlay.port("b2"), len(packet))
        overlay.until_known(1)
        speaker = connected(overlay.port("b1"), "speaker")
        speaker.sendall(packet * MESSAGES)
        eventually(lambda: reader.messages == MESSAGES)
        speaker.sendall(packet)  # still connected
        eventually(lambda: reader.messages == MESSAGES + 1)
        for client in (speaker, reader):
            client.close()
    tables = read_tables(tmp_path / "traces")
    # A busy machine may answer late, and what arrived all the same is then given up.
    assert set(tables["dropped"]["reason"].to_pylist()) <= {"unacknowledged"}
    assert set(tables["slowed"]["publisher"].to_pylist()) == {"speaker"}
