"""A bounded load on one broker at loopback: one publisher, some subscribers, bytes counted.

Runs as a process of its own, so that it shares no core with the broker if there are two. Packets
are made beforehand, and of what comes back only the length is read: what limits the rate is the
broker. The publisher never runs more than a window ahead of the slowest subscriber, so that no
broker has a reason to drop anything.
"""

from __future__ import annotations

import json
import selectors
import sys
import time

from _clients import CLIENTS, READ_BYTES, Clients

CHUNK_BYTES = 1 << 16
STALLED_S = 10.0


def load(clients: Clients, messages: int, payload_bytes: int, window: int) -> dict:
    """Publish so many messages and wait until every subscriber has them all."""
    packet = clients.before + bytes(payload_bytes) + clients.after
    size = len(clients.before_heard) + payload_bytes + len(clients.after)
    per_chunk = max(1, min(CHUNK_BYTES // len(packet), window // 2))
    chunk = packet * per_chunk
    messages = messages // per_chunk * per_chunk
    selector = selectors.DefaultSelector()
    for client in clients.subscribers:
        selector.register(client, selectors.EVENT_READ)
    received = dict.fromkeys(clients.subscribers, 0)
    wanted, sent = messages * size, 0
    started_at = heard_at = time.perf_counter()
    while (slowest := min(received.values())) < wanted:
        while sent < messages and sent - slowest // size + per_chunk <= window:
            clients.publisher.sendall(chunk)
            sent += per_chunk
        for key, _ in selector.select(0.05):
            received[key.fileobj] += len(key.fileobj.recv(READ_BYTES))
            heard_at = time.perf_counter()
        if time.perf_counter() - heard_at > STALLED_S:
            break
    # A NATS server asks once in a while whether a client is there: a few bytes that nobody wanted.
    delivered = sum(min(each, wanted) for each in received.values()) / size
    lost = round(messages * len(received) - delivered)
    return {"per_s": delivered / (heard_at - started_at), "lost": lost}


if __name__ == "__main__":
    language, port, fan_out, *rest = sys.argv[1:]
    messages, payload_bytes, window = map(int, rest)
    at = int(port)
    clients = CLIENTS[language](at, at, payload_bytes, int(fan_out))
    print(json.dumps(load(clients, messages, payload_bytes, window)))
