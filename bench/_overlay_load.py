"""A bounded load across an overlay at loopback: a publisher at one broker, a subscriber at another.

The publisher and the subscriber share one thread; the publisher's socket is never waited for, so a
broker that does not read slows the publisher and not the subscriber. A message carries the instant
at which it was handed to the kernel, of which delays are made.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
import time
from contextlib import suppress

from _mqtt_load import READ_BYTES, TOPIC, connected, subscribed

from tidings.mqtt.codec import encode
from tidings.mqtt.packets import MQTT_3_1_1, Publish

STALLED_S = 15.0
STAMP = struct.Struct(">d")
AT_ONCE = 500  # messages that are made and offered to the kernel together


def load(ports: tuple[int, int], messages: int, payload_bytes: int, rate_per_s: float) -> dict:
    """Publish so many messages, at a rate or (0) as fast as they are taken; wait for them all."""
    subscriber, publisher = subscribed(ports[1], 0), connected(ports[0], "publisher")
    _until_heard(publisher, subscriber, payload_bytes)
    publisher.setblocking(False)
    template = encode(Publish(TOPIC, bytes(payload_bytes)), MQTT_3_1_1)
    size = len(template)
    head, tail = template[: size - payload_bytes], bytes(payload_bytes - STAMP.size)
    selector = selectors.DefaultSelector()
    selector.register(subscriber, selectors.EVENT_READ)
    made = received = 0
    waiting, heard, delays = memoryview(b""), b"", list[float]()
    started_at = heard_at = time.perf_counter()
    while received < messages and time.perf_counter() - heard_at < STALLED_S:
        now = time.perf_counter()
        if not waiting and made < messages:
            due = messages if not rate_per_s else int((now - started_at) * rate_per_s) + 1
            count = min(AT_ONCE, messages - made, due - made)
            if count > 0:
                waiting = memoryview((head + STAMP.pack(now) + tail) * count)
                made += count
        if waiting:
            with suppress(BlockingIOError):
                waiting = waiting[publisher.send(waiting) :]
        for key, _ in selector.select(0.001):
            if key.fileobj is subscriber:
                heard += subscriber.recv(READ_BYTES)
                whole = len(heard) // size
                now = time.perf_counter()
                for number in range(whole):
                    at = number * size + size - payload_bytes
                    delays.append(now - STAMP.unpack_from(heard, at)[0])
                received, heard, heard_at = received + whole, heard[whole * size :], now
    seconds = heard_at - started_at
    delays.sort()
    p50, p99 = (delays[int(len(delays) * part)] for part in (0.5, 0.99)) if delays else (0.0, 0.0)
    lost = messages - received
    return {"per_s": received / seconds, "lost": lost, "p50_ms": p50 * 1e3, "p99_ms": p99 * 1e3}


def _until_heard(publisher: socket.socket, subscriber: socket.socket, payload_bytes: int) -> None:
    """The far subscription takes a moment to be known: speak until it is, then be still."""
    packet = encode(Publish(TOPIC, bytes(payload_bytes)), MQTT_3_1_1)
    sent = received = 0
    last_at = time.perf_counter()
    while received < sent or not received:
        if not received:
            publisher.sendall(packet)
            sent += 1
        time.sleep(0.05)
        try:
            received += len(subscriber.recv(READ_BYTES)) // len(packet)
            last_at = time.perf_counter()
        except BlockingIOError:
            if received and time.perf_counter() - last_at > 1.0:
                return  # what was said before anybody wanted it never comes
        assert time.perf_counter() - last_at < STALLED_S, "nothing crosses the overlay"


if __name__ == "__main__":
    near, far, *rest = map(int, sys.argv[1:])
    print(json.dumps(load((near, far), *rest)))
