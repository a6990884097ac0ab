"""One broker, or five, with many subscriptions, in a process of its own, so that the growth of its
memory is theirs.

Arguments: what to measure (`own`, `other` or `overlay`), how many subscriptions, how many different
filters they have, and for the first two a file of frames: `own` writes what its broker tells,
`other` reads it. Prints what was found as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from math import inf
from pathlib import Path

from tidings.broker.broker import Broker
from tidings.broker.codec import Decoder, encode
from tidings.broker.effects import Effect, Send
from tidings.broker.frames import Ack, Data, Interests
from tidings.broker.settings import Settings
from tidings.core.contract import Contract, Subscription, subscription_id
from tidings.core.links.estimates import LinkEstimate
from tidings.core.message import Message

NAMES = ("b1", "b2", "b3", "b4", "b5")
LINKS = tuple(("b1", other) for other in NAMES[1:])  # a star: all is passed on once
SETTINGS = Settings(estimates="pinned")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PUBLICATIONS = 20_000
TOPICS = 1_000  # that publications are about, each again and again
BATCH = 1_000  # subscriptions that come between two looks at the clock of the broker
CONTRACTS = tuple(Contract(deadline_s=seconds) for seconds in (1.0, 5.0, inf))


def subscriptions(broker: str, count: int, filters: int) -> Iterator[Subscription]:
    for number in range(count):
        topic = topic_of(number % filters)
        wish = subscription_id(broker, f"client-{number}", topic)
        yield Subscription(wish, broker, topic, "", CONTRACTS[number % filters % len(CONTRACTS)])


def topic_of(number: int) -> str:
    return f"sensors/{number}/temperature"


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def linked(name: str, *others: str) -> Broker:
    broker = Broker(name, SETTINGS, dict.fromkeys(others, LinkEstimate(0.001)))
    for other in others:
        broker.link_up(other, 0.0)
        broker.link_ready(other, inf, 0.0)
    return broker


def subscribe(broker: Broker, count: int, filters: int) -> Iterator[list[Effect]]:
    """What the broker has to say, now and then."""
    for number, wish in enumerate(subscriptions(broker.name, count, filters)):
        broker.subscribe(wish, 1.0)
        if number % BATCH == BATCH - 1:
            yield broker.tick(2.0)
    yield broker.tick(2.0)


def answered(broker: Broker, neighbour: str, effects: list[Effect]) -> None:
    """The neighbour has got all that was sent to it."""
    sent = [each.frame for each in effects if isinstance(each, Send)]
    if ids := tuple(frame.transmission for frame in sent if isinstance(frame, Data | Interests)):
        broker.receive(neighbour, Ack(ids), 2.0)


def publications_per_s(broker: Broker, neighbour: str, filters: int) -> float:
    """Published one by one; what goes to the neighbour is answered at once."""
    topics = [
        topic_of(number * max(1, filters // TOPICS)) for number in range(min(TOPICS, filters))
    ]
    messages = [
        Message(broker.message_ids.take(), topics[number % len(topics)], b"21.5")
        for number in range(PUBLICATIONS)
    ]
    for message in messages[:TOPICS]:  # plans are made
        answered(broker, neighbour, broker.publish(message, 3.0))
    began_at = time.process_time()
    for message in messages[TOPICS:]:
        answered(broker, neighbour, broker.publish(message, 3.0))
    return (PUBLICATIONS - TOPICS) / (time.process_time() - began_at)


def own(count: int, filters: int, frames: Path) -> dict[str, float]:
    broker, before = linked("b1", "b9"), resident_bytes()
    began_at = time.process_time()
    with frames.open("wb") as file:
        for effects in subscribe(broker, count, filters):
            told = [each.frame for each in effects if isinstance(each, Send)]
            file.writelines(encode(frame) for frame in told if isinstance(frame, Interests))
            answered(broker, "b9", effects)
    took_s = time.process_time() - began_at
    size_bytes = resident_bytes() - before
    rate = publications_per_s(broker, "b9", filters)
    return {"bytes": size_bytes / count, "cpu_s": took_s, "publications_per_s": rate}


def other(count: int, filters: int, frames: Path) -> dict[str, float]:
    broker, before = linked("b2", "b1"), resident_bytes()
    began_at, decoder = time.process_time(), Decoder()
    with frames.open("rb") as file:
        while piece := file.read(1 << 16):
            answered(broker, "b1", broker.receive_all("b1", decoder.feed(piece), 1.0))
    took_s = time.process_time() - began_at
    size_bytes = resident_bytes() - before
    assert broker.subscriptions == count, broker.subscriptions
    rate = publications_per_s(broker, "b1", filters)
    return {"bytes": size_bytes / count, "cpu_s": took_s, "publications_per_s": rate}


def overlay(count: int, filters: int) -> dict[str, float]:
    """Five brokers with a fifth of the subscriptions each, until all of them know of all."""
    near = {n: [b if a == n else a for a, b in LINKS if n in (a, b)] for n in NAMES}
    brokers = {name: linked(name, *near[name]) for name in NAMES}
    before, began_at, octets = resident_bytes(), time.process_time(), 0
    waiting: deque[tuple[str, str, bytes]] = deque()

    def carry_out(name: str, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                waiting.append((name, effect.neighbour, encode(effect.frame)))

    rounds = [subscribe(brokers[name], count // len(NAMES), filters) for name in NAMES]
    for steps in zip(*rounds, strict=True):
        for name, effects in zip(NAMES, steps, strict=True):
            carry_out(name, effects)
        while waiting:
            sender, receiver, words = waiting.popleft()
            octets += len(words)
            frames = Decoder().feed(words)
            carry_out(receiver, brokers[receiver].receive_all(sender, frames, 2.0))
    took_s = time.process_time() - began_at
    known = {broker.subscriptions for broker in brokers.values()}
    assert known == {count // len(NAMES) * len(NAMES)}, known
    return {"bytes": (resident_bytes() - before) / count, "cpu_s": took_s, "told_bytes": octets}


what, (count, filters) = sys.argv[1], map(int, sys.argv[2:4])
if what == "overlay":
    found = overlay(count, filters)
else:
    found = {"own": own, "other": other}[what](count, filters, Path(sys.argv[4]))
print(json.dumps(found))
