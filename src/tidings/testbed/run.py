"""How does a live run go, from the start of its brokers to their end?

All brokers start; clients connect and subscribe; then the run begins, and from this instant on
publishers publish as the scenario says and brokers fail as it says. In the end publishers stop,
what is under way gets some time to arrive, and everybody leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import lru_cache
from math import inf

from tidings.core.contract import Subscription
from tidings.core.errors import ConfigError
from tidings.live.clock import Clock
from tidings.sim.scenario import Speaker
from tidings.sim.workload import Publication, publications
from tidings.testbed.overlay import Overlay
from tidings.testbed.plan import Plan
from tidings.testbed.punctuality import NUMBER_BYTES, Punctuality, client_name
from tidings.testbed.traffic import Address, Outgoing, Traffic, publication

BEGIN_IN_S = 0.2  # until every broker has heard when the run began


class LiveRun:
    """A plan, carried out. Whoever has made one must `stop` it: then no broker is left behind."""

    def __init__(self, planned: Plan, clock: Clock, with_traffic: bool = True) -> None:
        """Without traffic there are only brokers, and publishing is left to others."""
        self.planned, self.clock = planned, clock
        folder = planned.traces / ".brokers" / planned.run
        self.overlay = Overlay(planned.brokers, folder, clock, planned.links)
        self._subscriptions = planned.load.subscriptions if with_traffic else ()
        policies = planned.scenario.settings().policies
        self.traffic = Traffic(clock, Punctuality(self._subscriptions, policies))
        self._publishers = planned.load.publishers if with_traffic else ()

    async def connect(self) -> bool:
        """Waits for clients, subscriptions and links; false if some links are not there in time."""
        by_client: dict[tuple[str, str], list[Subscription]] = {}
        for wish in self._subscriptions:
            by_client.setdefault((wish.broker, client_name(wish)), []).append(wish)
        for (broker, name), own in by_client.items():
            self.traffic.connect(name, self._address(broker), own)
        for index, publisher in enumerate(self._publishers):
            self.traffic.connect(_publisher_name(index), self._address(publisher.broker))
        while not await self.traffic.ready():
            self.overlay.check()
        if refused := self.traffic.refused():
            source = self.planned.scenario.source
            raise ConfigError(source, "workload", refused, "what brokers grant")
        # Not every broker is to know every subscription if messages find their takers themselves.
        known_everywhere = not self.planned.scenario.broker.is_open
        return await self.overlay.complete(len(self._subscriptions) if known_everywhere else 0)

    def begin(self, endless: bool) -> float:
        """Brokers fail, links move and publishers publish from now on; returns when publishing is
        to end."""
        started_at, run = self.clock() + BEGIN_IN_S, self.planned.scenario.run
        self.overlay.begin(started_at, self.planned.broker_outages, self.planned.leaving)
        clients = {client.name: client for client in self.traffic.clients}
        for index, publisher in enumerate(self._publishers):
            published = publications(self.planned.scenario, index, publisher)
            messages = _messages(publisher, published, started_at)
            self.traffic.start_publishing(clients[_publisher_name(index)], messages)
        return inf if endless else started_at + run.start_s + run.seconds

    async def drain(self) -> None:
        """Nothing more is published; what is under way gets its time to arrive."""
        self.traffic.stop_publishing()
        await asyncio.sleep(self.planned.scenario.run.drain_s)
        self.overlay.check()

    async def stop(self) -> None:
        """Clients leave, then brokers end; traces are complete when this returns."""
        await self.traffic.stop()
        await self.overlay.stop()

    def _address(self, broker: str) -> Address:
        return self.planned.scenario.live.host, self.overlay.brokers[broker].mqtt_port


def _messages(
    publisher: Speaker, published: Iterator[Publication], started_at: float
) -> Iterator[Outgoing]:
    """What one publisher publishes. Often the same packet comes again, so the last one is
    remembered."""
    payload, packet = bytes(publisher.payload_bytes), lru_cache(maxsize=1)(publication)
    for one in published:
        data = packet(publisher.topic, payload, one.contract, one.properties)
        said = (publisher.topic, one.contract, one.properties)
        yield Outgoing(started_at + one.at, data, *said, len(payload) >= NUMBER_BYTES)


def _publisher_name(index: int) -> str:
    return f"publisher-{index + 1}"
