"""Three broker processes, every pair linked; a client speaks at `a`, another listens at `c`.

    a ─── c      a - c is the link that a test does something to; the detour over b has 10 ms a hop
     \\   /
       b

Delays are those that the two clients see; hops come from the brokers' traces.
"""

from __future__ import annotations

import asyncio
import socket
from collections import defaultdict
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from msgspec import Struct
from support.live import PahoClient, free_ports

from tidings.live.clock import Clock, wall_clock
from tidings.live.config import BrokerConfig, parse
from tidings.testbed.overlay import Overlay
from tidings.traces.headline import read_tables

BEGIN_IN_S, DRAIN_S = 0.5, 1.0
LINK = {"delay_s": 0.010}
Hop = tuple[str, str]


class Journey(Struct, frozen=True):
    """What became of one message."""

    sent_s: float  # since the run began
    delay_s: float  # between the clients; inf: it never arrived
    hops: tuple[Hop, ...]


class Story(Struct, frozen=True):
    """A run of the triangle."""

    journeys: list[Journey]  # in the order of publication
    repeated: int  # messages that the listener got again
    changes: list[tuple[float, str, str, bool]]  # since the run began: broker, neighbour, up

    def between(self, from_s: float, to_s: float) -> Story:
        """The part about messages that were sent in an interval."""
        part = [journey for journey in self.journeys if from_s <= journey.sent_s < to_s]
        return Story(part, self.repeated, self.changes)

    @property
    def lost(self) -> int:
        return sum(journey.delay_s == inf for journey in self.journeys)

    def within(self, delay_s: float) -> float:
        """The share of messages that took no longer."""
        return float(np.mean([journey.delay_s <= delay_s for journey in self.journeys]))

    @property
    def alone(self) -> float:
        """The share of messages of which a single copy was put on a single link."""
        return float(np.mean([len(journey.hops) == 1 for journey in self.journeys]))

    @property
    def copies(self) -> float:
        """Transmissions per message."""
        return float(np.mean([len(journey.hops) for journey in self.journeys]))


class Listener(PahoClient):
    """Remembers when each message came first."""

    def __init__(self, port: int, clock: Clock) -> None:
        self.arrived_at: dict[int, float] = {}
        self.repeated = 0
        self._clock = clock
        super().__init__(port)

    def _heard(self, _client: Any, _user: Any, message: Any) -> None:
        serial = int(message.payload)
        self.repeated += serial in self.arrived_at
        self.arrived_at.setdefault(serial, self._clock())


def triangle(
    folder: Path, seconds: float, a_c: dict[str, Any], rate_per_s: float = 100.0, **settings: Any
) -> Story:
    """One run; `a_c` are the conditions of the direct link, `settings` those of all brokers."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(folder, seconds, LINK | a_c, rate_per_s, settings))


async def _run(
    folder: Path, seconds: float, a_c: dict[str, Any], rate_per_s: float, settings: dict[str, Any]
) -> Story:
    clock = wall_clock()
    overlay = Overlay(_configs(folder, a_c, settings), folder / "brokers", clock)
    clients: list[PahoClient] = []
    try:
        await overlay.start()
        listener = Listener(overlay.brokers["c"].mqtt_port, clock)
        clients += [listener, speaker := PahoClient(overlay.brokers["a"].mqtt_port)]
        _hurry(speaker)
        listener.subscribe("t")
        assert await overlay.complete(subscriptions=1)
        started_at = clock() + BEGIN_IN_S
        overlay.begin(started_at, {})
        sent_at = await _speak(speaker, clock, started_at, seconds, 1.0 / rate_per_s)
        await asyncio.sleep(DRAIN_S)
        overlay.check()
    finally:
        for client in clients:
            client.close()
        await overlay.stop()
    return _story(folder, listener, sent_at, started_at)


def _configs(
    folder: Path, a_c: dict[str, Any], settings: dict[str, Any]
) -> dict[str, BrokerConfig]:
    ports = dict(zip("abc", free_ports(3), strict=True))
    documents = {
        name: {
            "name": name,
            "mqtt_port": 0,
            "link_port": ports[name],
            "neighbour": [
                {"name": n, "port": ports[n], "emulate": LINK if "b" in (n, name) else a_c}
                for n in "abc"
                if n != name
            ],
            "traces": str(folder / "traces"),
            "broker": {"strategy": "dcrd", "trace": "hops", **settings},
        }
        for name in "abc"
    }
    return {name: parse(document, name) for name, document in documents.items()}


def _hurry(client: PahoClient) -> None:
    """Small packets leave at once; else the first few would wait for the broker's TCP to answer."""
    connection = client.client.socket()
    assert connection is not None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def _speak(
    speaker: PahoClient, clock: Clock, started_at: float, seconds: float, every_s: float
) -> list[float]:
    """Says its serial number, at a steady pace."""
    sent_at: list[float] = []
    while (at := started_at + len(sent_at) * every_s) < started_at + seconds:
        await asyncio.sleep(max(0.0, at - clock()))
        sent_at.append(clock())
        speaker.publish("t", str(len(sent_at) - 1))
    return sent_at


def _story(folder: Path, listener: Listener, sent_at: list[float], started_at: float) -> Story:
    tables = read_tables(folder / "traces")
    hops: dict[int, list[Hop]] = defaultdict(list)
    for row in sorted(tables["forwarded"].to_pylist(), key=lambda row: row["recorded_at"]):
        hops[row["message"]].append((row["broker"], row["neighbour"]))
    messages = sorted(tables["published"]["message"].to_pylist())  # ids grow with serials
    assert len(messages) == len(sent_at)
    journeys = [
        Journey(at - started_at, listener.arrived_at.get(serial, inf) - at, tuple(hops[message]))
        for serial, (at, message) in enumerate(zip(sent_at, messages, strict=True))
    ]
    changes = [
        (row["recorded_at"] - started_at, row["broker"], row["neighbour"], row["up"])
        for row in sorted(tables["link_changed"].to_pylist(), key=lambda row: row["recorded_at"])
    ]
    return Story(journeys, listener.repeated, changes)
