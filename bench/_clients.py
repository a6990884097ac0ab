"""Clients of brokers at loopback, in MQTT 3.1.1 or in NATS's own language: a line before a payload.

They say only what a load needs. Packets are made beforehand by whoever publishes, of what stands
around a payload.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NamedTuple

from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_3_1_1, Connect, Publish, Subscribe, TopicFilter

TOPIC = "bench/mqtt"
READ_BYTES = 1 << 20
NATS_PING, NATS_PONG = b"PING\r\n", b"PONG\r\n"


class Clients(NamedTuple):
    """A publisher and subscribers, and what stands around a payload on either side."""

    publisher: socket.socket
    subscribers: list[socket.socket]
    before: bytes
    before_heard: bytes
    after: bytes


def mqtt_clients(near: int, far: int, payload_bytes: int, subscribers: int = 1) -> Clients:
    before = encode(Publish(TOPIC, bytes(payload_bytes)), MQTT_3_1_1)[:-payload_bytes]
    waiting = [_mqtt_subscriber(far, number) for number in range(subscribers)]
    return Clients(_mqtt_client(near, "publisher"), waiting, before, before, b"")


def nats_clients(near: int, far: int, payload_bytes: int, subscribers: int = 1) -> Clients:
    before, before_heard = f"PUB {TOPIC} {payload_bytes}\r\n", f"MSG {TOPIC} 1 {payload_bytes}\r\n"
    waiting = [_nats_subscriber(far) for _ in range(subscribers)]
    return Clients(_nats_client(near), waiting, before.encode(), before_heard.encode(), b"\r\n")


CLIENTS: dict[str, Callable[..., Clients]] = {"mqtt": mqtt_clients, "nats": nats_clients}


def _mqtt_client(port: int, name: str) -> socket.socket:
    """A client whose CONNECT was accepted."""
    client = _connected(port)
    client.sendall(encode(Connect(MQTT_3_1_1, name), MQTT_3_1_1))
    assert client.recv(4) == b"\x20\x02\x00\x00", "CONNECT was refused"
    return client


def _mqtt_subscriber(port: int, number: int) -> socket.socket:
    client = _mqtt_client(port, f"s{number}")
    client.sendall(encode(Subscribe(1, (TopicFilter(TOPIC),)), MQTT_3_1_1))
    assert client.recv(5)[:1] == b"\x90", "SUBSCRIBE was refused"
    client.setblocking(False)
    return client


def _nats_client(port: int) -> socket.socket:
    client = _connected(port)
    client.sendall(b'CONNECT {"verbose":false}\r\n')
    _until_answered(client)
    return client


def _nats_subscriber(port: int) -> socket.socket:
    client = _nats_client(port)
    client.sendall(f"SUB {TOPIC} 1\r\n".encode())
    _until_answered(client)
    client.setblocking(False)
    return client


def _connected(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def _until_answered(client: socket.socket) -> None:
    """Whatever was said before a PING has been understood when its answer comes."""
    client.sendall(NATS_PING)
    heard = b""
    while not heard.endswith(NATS_PONG):
        heard += client.recv(READ_BYTES)
        assert heard, "the server has hung up"
