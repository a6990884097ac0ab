"""Two broker processes, a slow link from `a` to `b`, and more to say at `a` than it can carry.

Messages of two kinds, of the same size and as many of each: what is urgent pays well and is soon
late, what is patient pays little and may take its time. Both are wanted at `b`, under subscriptions
that state deadline and price. Earnings are what the listeners themselves saw arrive in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from msgspec import Struct
from support.live import PahoClient

from tidings.core.message import HEADER_BYTES
from tidings.live.clock import Clock, wall_clock
from tidings.live.config import parse
from tidings.testbed.overlay import Overlay
from tidings.traces.headline import read_tables

RATE_BYTES_PER_S = 125_000.0  # 1 Mbit/s
PAYLOAD_BYTES = 5_000
MESSAGE_S = (PAYLOAD_BYTES + HEADER_BYTES) / RATE_BYTES_PER_S
OFFERED = 2.0  # times the rate
BEGIN_IN_S, DRAIN_S = 0.5, 2.5

Inside = Callable[[str], AbstractContextManager[None]]  # where a broker and its clients live


class Kind(Struct, frozen=True):
    """A kind of message, and what its subscriber states."""

    topic: str
    deadline_s: float
    price: float


URGENT, PATIENT = Kind("urgent", 0.4, 3.0), Kind("patient", 2.0, 1.0)


class Outcome(Struct, frozen=True):
    """What one overlay made of the offered messages."""

    earned: float
    in_time: dict[str, int]  # by topic
    sent: dict[str, int]
    waited_s: float  # in the broker's queue, of those that left it: median
    round_trip_s: float  # from there to the acknowledgement: median
    slowest_s: float  # the same, 95 of 100
    utilisation: float  # acknowledged bytes over what the link could carry
    transmissions: float  # per acknowledged message


class Listener(PahoClient):
    """Wants one kind of message, and remembers when each came first."""

    def __init__(self, port: int, kind: Kind, clock: Clock) -> None:
        self.arrived_at: dict[int, float] = {}
        self._clock = clock
        super().__init__(port)
        self.subscribe(
            kind.topic,
            deadline_ms=str(kind.deadline_s * 1000),
            price=str(kind.price),
            late="drop",
        )

    def _heard(self, _client: Any, _user: Any, message: Any) -> None:
        self.arrived_at.setdefault(int(message.payload[:8]), self._clock())


class Pair:
    """One overlay of the two, and its clients."""

    def __init__(
        self, folder: Path, link: dict[str, Any], inside: Inside, clock: Clock, **settings: Any
    ) -> None:
        """`link` goes into both brokers' tables of their neighbour, beside `host` by name."""
        self._folder, self._inside, self._clock = folder, inside, clock
        documents = {
            name: {
                "name": name,
                "host": "0.0.0.0",
                "mqtt_port": 0,
                "link_port": link["port"][name],
                "neighbour": [
                    {
                        "name": other,
                        "host": link["host"][other],
                        "port": link["port"][other],
                        "emulate": link.get("emulate"),
                    }
                ],
                "traces": str(folder / "traces"),
                "broker": {"trace": "hops", **settings},
            }
            for name, other in ("ab", "ba")
        }
        configs = {name: parse(document, name) for name, document in documents.items()}
        self._overlay = Overlay(configs, folder / "brokers", clock)
        self._clients: list[PahoClient] = []
        self.sent_at: dict[str, list[float]] = {URGENT.topic: [], PATIENT.topic: []}

    async def start(self) -> None:
        brokers = self._overlay.brokers
        for name, broker in brokers.items():
            with self._inside(name):
                await broker.start(incarnation=1)
        with self._inside("b"):
            port = brokers["b"].mqtt_port
            self._listeners = {
                kind: Listener(port, kind, self._clock) for kind in (URGENT, PATIENT)
            }
        self._clients += self._listeners.values()
        with self._inside("a"):
            self._speaker = PahoClient(brokers["a"].mqtt_port)
        self._clients.append(self._speaker)
        assert await self._overlay.complete(subscriptions=2)

    async def run(self, started_at: float, seconds: float) -> None:
        self._overlay.begin(started_at, {})
        every_s, number = MESSAGE_S / OFFERED, 0
        while (at := started_at + number * every_s) < started_at + seconds:
            await asyncio.sleep(max(0.0, at - self._clock()))
            self._say((URGENT, PATIENT)[number % 2])
            number += 1
        await asyncio.sleep(DRAIN_S)
        self._overlay.check()

    def _say(self, kind: Kind) -> None:
        sent_at = self.sent_at[kind.topic]
        sent_at.append(self._clock())
        serial = f"{len(sent_at) - 1:08}".encode()
        self._speaker.publish(kind.topic, serial.ljust(PAYLOAD_BYTES, b"."))

    async def stop(self) -> None:
        for client in self._clients:
            client.close()
        await self._overlay.stop()

    def outcome(self) -> Outcome:
        in_time = {kind.topic: self._in_time(kind) for kind in (URGENT, PATIENT)}
        tables = read_tables(self._folder / "traces")
        published = {row["message"]: row["recorded_at"] for row in tables["published"].to_pylist()}
        left = [row for row in tables["forwarded"].to_pylist() if row["broker"] == "a"]
        size_bytes = {row["transmission"]: row["size_bytes"] for row in left}
        answers = [row for row in tables["acknowledged"].to_pylist() if row["broker"] == "a"]
        trips = [row["round_trip_s"] for row in answers]
        lasted_s = max(row["recorded_at"] for row in answers) - min(
            row["recorded_at"] for row in left
        )
        carried = sum(size_bytes[row["transmission"]] for row in answers)
        return Outcome(
            sum(kind.price * in_time[kind.topic] for kind in (URGENT, PATIENT)),
            in_time,
            {topic: len(sent_at) for topic, sent_at in self.sent_at.items()},
            float(np.median([row["recorded_at"] - published[row["message"]] for row in left])),
            float(np.median(trips)),
            float(np.quantile(trips, 0.95)),
            carried / lasted_s / RATE_BYTES_PER_S,
            len(left) / len(answers),
        )

    def _in_time(self, kind: Kind) -> int:
        arrived_at = self._listeners[kind].arrived_at
        return sum(
            arrived_at[serial] - at <= kind.deadline_s
            for serial, at in enumerate(self.sent_at[kind.topic])
            if serial in arrived_at
        )


def nowhere(_name: str) -> AbstractContextManager[None]:
    """All live where the test does."""
    return nullcontext()


def compare(
    folder: Path,
    seconds: float,
    links: dict[str, dict[str, Any]],
    inside: Mapping[str, Inside] | None = None,
    **settings: Any,
) -> dict[str, Outcome]:
    """The policies named in `links`, each on an overlay of its own, at the same time."""

    async def running() -> dict[str, Outcome]:
        clock = wall_clock()
        pairs = {
            policy: Pair(
                folder / policy,
                link,
                (inside or {}).get(policy, nowhere),
                clock,
                scheduling=policy,
                **settings,
            )
            for policy, link in links.items()
        }
        try:
            for pair in pairs.values():
                await pair.start()
            started_at = clock() + BEGIN_IN_S
            await asyncio.gather(*(pair.run(started_at, seconds) for pair in pairs.values()))
        finally:
            for pair in pairs.values():
                await pair.stop()
        return {policy: pair.outcome() for policy, pair in pairs.items()}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(running())
