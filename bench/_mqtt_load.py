"""A bounded load on one MQTT broker at loopback: one publisher, some subscribers, bytes counted.

Runs as a process of its own, so that it shares no core with the broker if there are two. Packets
are made beforehand, and of what comes back only the length is read: what limits the rate is the
broker. The publisher never runs more than a window ahead of the slowest subscriber, so that no
broker has a reason to drop anything.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time

from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_3_1_1, Connect, Publish, Subscribe, TopicFilter

TOPIC = "bench/mqtt"
CHUNK_BYTES = 1 << 16
READ_BYTES = 1 << 20
STALLED_S = 10.0


def connected(port: int, name: str) -> socket.socket:
    """A client whose CONNECT was accepted."""
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(encode(Connect(MQTT_3_1_1, name), MQTT_3_1_1))
    assert client.recv(4) == b"\x20\x02\x00\x00", "CONNECT was refused"
    return client


def subscribed(port: int, number: int) -> socket.socket:
    client = connected(port, f"s{number}")
    client.sendall(encode(Subscribe(1, (TopicFilter(TOPIC),)), MQTT_3_1_1))
    assert client.recv(5)[:1] == b"\x90", "SUBSCRIBE was refused"
    client.setblocking(False)
    return client


def load(port: int, fan_out: int, messages: int, payload_bytes: int, window: int) -> dict:
    """Publish so many messages and wait until every subscriber has them all."""
    subscribers = [subscribed(port, number) for number in range(fan_out)]
    publisher = connected(port, "publisher")
    packet = encode(Publish(TOPIC, bytes(payload_bytes)), MQTT_3_1_1)
    per_chunk = max(1, min(CHUNK_BYTES // len(packet), window // 2))
    chunk = packet * per_chunk
    messages = messages // per_chunk * per_chunk
    selector = selectors.DefaultSelector()
    for client in subscribers:
        selector.register(client, selectors.EVENT_READ)
    received = dict.fromkeys(subscribers, 0)
    wanted, sent = messages * len(packet), 0
    started_at = heard_at = time.perf_counter()
    while (slowest := min(received.values())) < wanted:
        while sent < messages and sent - slowest // len(packet) + per_chunk <= window:
            publisher.sendall(chunk)
            sent += per_chunk
        for key, _ in selector.select(0.05):
            received[key.fileobj] += len(key.fileobj.recv(READ_BYTES))
            heard_at = time.perf_counter()
        if time.perf_counter() - heard_at > STALLED_S:
            break
    seconds = heard_at - started_at
    delivered = sum(received.values()) / len(packet)
    return {"per_s": delivered / seconds, "lost": round(messages * fan_out - delivered)}


if __name__ == "__main__":
    print(json.dumps(load(*map(int, sys.argv[1:]))))
