"""A bounded load across an overlay at loopback: a publisher at one broker, a subscriber at another.

The publisher and the subscriber share one thread; the publisher's socket is never waited for, so a
broker that does not read slows the publisher and not the subscriber. A message carries the instant
at which it was made, of which delays are made. An overlay may be a single broker.
"""

from __future__ import annotations

import json
import selectors
import struct
import sys
import time
from contextlib import suppress
from math import inf
from typing import NamedTuple

from _clients import CLIENTS, NATS_PING, NATS_PONG, READ_BYTES, Clients

STALLED_S = 15.0
STAMP = struct.Struct(">d")
AT_ONCE = 500  # messages that are made and offered to the kernel together
PARTS = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}


class Offer(NamedTuple):
    """So many messages: at a rate, within a window of messages that are under way, or neither."""

    messages: int
    payload_bytes: int
    rate_per_s: float
    window: int


def load(clients: Clients, offer: Offer) -> dict:
    """Publish as offered and wait for everything."""
    _until_heard(clients, offer.payload_bytes)
    publisher, (subscriber,), before, before_heard, after = clients
    publisher.setblocking(False)
    tail = bytes(offer.payload_bytes - STAMP.size) + after
    size = len(before_heard) + STAMP.size + len(tail)
    selector = selectors.DefaultSelector()
    selector.register(subscriber, selectors.EVENT_READ)
    made, rate_per_s, window = 0, offer.rate_per_s or inf, offer.window or inf
    waiting, heard, delays = memoryview(b""), b"", list[float]()
    started_at = heard_at = time.perf_counter()
    while len(delays) < offer.messages and time.perf_counter() - heard_at < STALLED_S:
        now = time.perf_counter()
        if not waiting:
            due = offer.messages if rate_per_s == inf else int((now - started_at) * rate_per_s) + 1
            count = min(AT_ONCE, min(offer.messages, due, len(delays) + window) - made)
            if count > 0:
                waiting = memoryview((before + STAMP.pack(now) + tail) * count)
                made += count
        if waiting:
            with suppress(BlockingIOError):
                waiting = waiting[publisher.send(waiting) :]
        if selector.select(0.0005):
            heard += subscriber.recv(READ_BYTES)
            heard_at, at = time.perf_counter(), 0
            while len(heard) - at >= size:
                if heard.startswith(NATS_PING, at):
                    at += len(NATS_PING)
                    subscriber.sendall(NATS_PONG)
                    continue
                delays.append(heard_at - STAMP.unpack_from(heard, at + len(before_heard))[0])
                at += size
            heard = heard[at:]
    return _summary(delays, offer, heard_at - started_at)


def _summary(delays: list[float], offer: Offer, seconds: float) -> dict:
    delays.sort()
    found = {"per_s": len(delays) / seconds, "lost": offer.messages - len(delays)}
    for name, part in PARTS.items():
        found[name] = delays[int(len(delays) * part)] * 1e3 if delays else inf
    return found


def _until_heard(clients: Clients, payload_bytes: int) -> None:
    """The far subscription takes a moment to be known: speak until it is, then be still."""
    publisher, (subscriber,), before, before_heard, after = clients
    size, sent, received = len(before_heard) + payload_bytes + len(after), 0, 0
    last_at = time.perf_counter()
    while received < sent or not received:
        if not received:
            publisher.sendall(before + bytes(payload_bytes) + after)
            sent += 1
        time.sleep(0.05)
        try:
            received += len(subscriber.recv(READ_BYTES)) // size
            last_at = time.perf_counter()
        except BlockingIOError:
            if received and time.perf_counter() - last_at > 1.0:
                return  # what was said before anybody wanted it never comes
        assert time.perf_counter() - last_at < STALLED_S, "nothing crosses the overlay"


if __name__ == "__main__":
    language, near, far, *rest = sys.argv[1:]
    offer = Offer(*map(int, rest))
    clients = CLIENTS[language](int(near), int(far), offer.payload_bytes)
    print(json.dumps(load(clients, offer)))
