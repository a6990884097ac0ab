"""How does a live broker begin, and end?

It listens first and says so, then dials its neighbours; it ends on SIGTERM or SIGINT by telling its
clients, closing its links and writing the last trace rows. Attached to another process (`tidings
up`) it also ends when its standard input does, so no broker outlives the one who started it; takes
the instant at which the run began from there; and reports on standard output what changes.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from tidings.broker.broker import Broker
from tidings.core.errors import ConfigError
from tidings.core.rng import Draws
from tidings.live.clock import wall_clock
from tidings.live.config import BrokerConfig, Neighbour
from tidings.live.deliveries import Deliveries
from tidings.live.driver import Driver
from tidings.live.emulation import Emulation, Origin
from tidings.live.links import Links
from tidings.live.mqtt_front import MqttFront
from tidings.live.tracefiles import TraceFiles

INCARNATIONS_SINCE = 1_735_689_600  # 2025-01-01; 31 bits of quarter seconds last until 2042
STATUS_EVERY_S = 0.1
SWITCH_INTERVAL_S = 0.001  # the trace's thread may hold up the event loop for so long
GC_THRESHOLD = 50_000  # objects in cycles are few here; looking for them often is dear


class LiveBroker:
    """One broker with its sockets and files, inside a running event loop."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config, self._clock = config, wall_clock()
        incarnation = config.incarnation or int((self._clock() - INCARNATIONS_SINCE) * 4)
        known = {neighbour.name: neighbour.known() for neighbour in config.neighbour}
        self.broker = Broker(config.name, config.settings(), known, incarnation)
        self.trace = TraceFiles(Path(config.traces), config.run, config.name)
        self.origin = Origin(config.started_at)
        self._draws = Draws(config.seed)
        deliveries = Deliveries()
        self.driver = Driver(self.broker, self._clock, self.trace, deliveries)
        self.front = MqttFront(self.driver, deliveries, config.mqtt)
        self.links = Links(self.driver, config.neighbour, self._draws)
        self.emulations = {n.name: e for n in config.neighbour if (e := self._lay_wire(n))}
        self._servers: list[asyncio.Server] = []
        self._flusher: asyncio.Task[None] | None = None
        self.mqtt_port = self.link_port = 0

    async def start(self) -> None:
        """Listens; links may take a little longer."""
        try:
            self.link_port = await self._listen(self.links.accept, "link_port")
            self.mqtt_port = await self._listen(self.front.accept, "mqtt_port")
        except ConfigError:
            await self.stop()
            raise
        self.links.start()
        self.front.watch()
        self._flusher = asyncio.create_task(self._keep_flushing())

    async def stop(self) -> None:
        """Ends in good order: nothing recorded is lost."""
        for server in self._servers:
            server.close()
        self.front.stop()
        self.links.stop()
        await asyncio.sleep(0)  # what was written leaves
        if self._flusher:
            self._flusher.cancel()
        self.driver.close()
        self.trace.close()

    def status(self) -> dict[str, Any]:
        """What somebody who waits for the overlay to be complete wants to know."""
        return {"links": self.links.up(), "subscriptions": len(self.broker._interests)}

    def _lay_wire(self, neighbour: Neighbour) -> Emulation | None:
        wire = self.driver.add_wire(neighbour.name)
        if neighbour.emulate is None:
            return None
        wire.emulation = Emulation(
            (self._config.name, neighbour.name),
            neighbour.emulate.conditions(),
            self._draws,
            self.origin,
            self._clock,
            wire,
            neighbour.emulate.processing_s,
        )
        return wire.emulation

    async def _listen(self, accept: Callable[[], asyncio.Protocol], field: str) -> int:
        config = self._config
        port = getattr(config, field)
        try:
            server = await asyncio.get_running_loop().create_server(accept, config.host, port)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "is in use" if taken else str(error.strerror or error)
            accepted = f"a port of {config.host} to listen on (this one {why}), or 0 for any"
            raise ConfigError(config.source or config.name, field, port, accepted) from None
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(self._config.flush_s)
            self.trace.flush()


def run_broker(config: BrokerConfig, attached: bool = False, as_json: bool = True) -> None:
    """Runs a broker until it is told to stop."""
    logging.basicConfig(format=f"{config.name}: %(message)s", level=logging.INFO)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(config, attached, as_json))


async def _run(config: BrokerConfig, attached: bool, as_json: bool) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    live = LiveBroker(config)
    await live.start()
    _announce(live, config, as_json)
    reporter = None
    if attached:
        await loop.connect_read_pipe(lambda: _Attachment(live, stop), sys.stdin)
        reporter = asyncio.create_task(_keep_reporting(live))
    await stop.wait()
    if reporter:
        reporter.cancel()
    await live.stop()


class _Attachment(asyncio.Protocol):
    """Standard input: lines of JSON, and its end."""

    def __init__(self, live: LiveBroker, stop: asyncio.Event) -> None:
        self._live, self._stop, self._kept = live, stop, b""

    def data_received(self, data: bytes) -> None:
        *lines, self._kept = (self._kept + data).split(b"\n")
        for line in lines:
            self._live.origin.started_at = float(json.loads(line)["started_at"])

    def eof_received(self) -> None:
        self._stop.set()

    def connection_lost(self, problem: Exception | None) -> None:
        self._stop.set()


async def _keep_reporting(live: LiveBroker) -> None:
    told: dict[str, Any] = {}
    while True:
        if (status := live.status()) != told:
            _say(status)
            told = status
        await asyncio.sleep(STATUS_EVERY_S)


def _announce(live: LiveBroker, config: BrokerConfig, as_json: bool) -> None:
    if as_json:
        ports = {"mqtt_port": live.mqtt_port, "link_port": live.link_port}
        _say({"ready": config.name, **ports})
        return
    print(
        f"Broker {config.name} serves MQTT on {config.host}:{live.mqtt_port} and neighbours on "
        f"{config.host}:{live.link_port}; its trace goes to {config.traces}. Ctrl-C ends it.",
        flush=True,
    )


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)
