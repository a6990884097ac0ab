"""What is one live broker made of? State machine, driver, clients, links, trace, store, logs.

It restores what an earlier incarnation stored, listens, then dials its neighbours. When it ends it
disconnects its clients, takes leave if others might look for it, closes its links, and writes the
last trace rows.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from secrets import randbelow, token_hex
from typing import Any

from tidings.broker.broker import Broker
from tidings.broker.control.linkage import Whereabouts
from tidings.core.errors import ConfigError
from tidings.core.rng import Draws
from tidings.live.clock import wall_clock
from tidings.live.config import BrokerConfig, Neighbour
from tidings.live.driver import Driver
from tidings.live.links.connecting import LinkConnector
from tidings.live.links.emulation import Emulation, Origin
from tidings.live.logs.keeper import Logs
from tidings.live.logs.records import LogError
from tidings.live.logs.server import LogServer
from tidings.live.mqtt.front import MqttFront
from tidings.live.store import MessageStore, StoreError
from tidings.traces.live_files import TraceFiles, check_writable

INCARNATIONS_SINCE = 1_735_689_600  # 2025-01-01; they are quarter seconds since then
UNDATED_INCARNATIONS = 1 << 16  # to draw from if the clock is from before that
HANDED_ON_WITHIN_S = 2.0  # how long neighbours may take to answer for what a leaving broker has
SENT_WITHIN_S = 2.0  # how long clients and neighbours may take to read the rest at the end

logger = logging.getLogger("tidings.store")


class LiveBroker:
    """One broker with its sockets and files, inside a running event loop."""

    def __init__(self, config: BrokerConfig, fail: Callable[[], None] = lambda: None) -> None:
        """`fail()` is called if the broker cannot go on and has to be stopped."""
        self._config, self._clock = config, wall_clock()
        self._check_traces()
        known = config.known(config.source)  # raises before any file is opened
        self.store = self._open_store()
        self.logs = self._open_logs()
        incarnation = config.incarnation or _incarnation(self._clock())
        there = Whereabouts() if config.moves else None
        awaited = {other.name: known[other.name] for other in config.neighbour if other.awaited}
        own = (config.name, config.settings(), awaited, incarnation)
        self.broker = Broker(*own, life=_life(config), whereabouts=there)
        self.trace = TraceFiles(Path(config.traces), config.run, config.name)
        self.origin = Origin(config.started_at)
        self._draws = Draws(config.seed)
        deliveries = self.logs.deliveries()
        self.driver = Driver(self.broker, self._clock, self.trace, deliveries, self.store, fail)
        self.front = MqttFront(self.driver, deliveries, config.mqtt)
        self.links = LinkConnector(self.driver, config, known, self._draws)
        self.log_server = LogServer(self.logs.by_name)
        for neighbour in config.neighbour:
            self._lay_wire(neighbour)
        self._servers: list[asyncio.Server] = []
        self._flusher: asyncio.Task[None] | None = None
        self.mqtt_port = self.link_port = self.log_port = 0

    async def start(self) -> None:
        """Listens; links may take a little longer."""
        try:
            self.logs.start(self.driver)
            self._restore()
            if self._config.log:
                self.log_port = await self._listen(self.log_server.accept, "log_port", "log_host")
            self.link_port = await self._listen(self.links.accept, "link_port")
            if self._config.links_itself:
                self.broker.reached_at(self._config.told_address(self.link_port))
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
        if self._config.moves:
            await self._hand_on()
        self.front.stop()
        if self._config.moves:
            self.driver.leave()
        self.links.stop()
        await self._until_sent()
        self._flush_notices(ending=True)
        if self._flusher:
            self._flusher.cancel()
        self.driver.close()
        await self.log_server.stop()
        await self.logs.stop()
        self.store.close()
        self.trace.close()

    def status(self) -> dict[str, Any]:
        """What is reported to the process that started it."""
        return {
            "links": self.links.up(),
            "subscriptions": self.broker.subscriptions,
            "lost_trace_rows": self.trace.lost_rows,
            "stored": len(self.store),
            "stopped_logs": self.logs.stopped,
            "dropped": dict(self.driver.dropped),
        }

    def _check_traces(self) -> None:
        """Raises now, and not when the first rows are lost."""
        try:
            check_writable(Path(self._config.traces))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise self._fault("traces", f"a folder that can be written (here: {why})") from None

    def _open_store(self) -> MessageStore:
        try:
            return MessageStore(self._config.store_file())
        except StoreError as error:
            folder, source = str(self._config.store_file().parent), self._config.source
            accepted = f"a folder where this broker can keep durable messages (here: {error})"
            raise ConfigError(source or self._config.name, "store", folder, accepted) from None

    def _open_logs(self) -> Logs:
        try:
            return Logs(self._config, self._clock)
        except LogError as error:
            self.store.close()
            accepted = f"a folder where this broker can keep its logs (here: {error})"
            raise self._fault("logs", accepted) from None

    def _restore(self) -> None:
        """Delivers what an earlier incarnation had stored."""
        now = self._clock()
        for damage in self.store.reports:
            logger.error("%s", damage)
        stored = self.store.restore(now)
        if stored:
            logger.info("%d stored messages are taken up", len(stored))
        self.driver.carry_out(self.broker.restore(stored, now), now)

    def _fault(self, field: str, accepted: str) -> ConfigError:
        config = self._config
        return ConfigError(config.source or config.name, field, getattr(config, field), accepted)

    async def _hand_on(self) -> None:
        """Waits until neighbours answer for what this broker has, if they do. Clients get what
        comes for them meanwhile; later nothing is read, so that neighbours keep it."""
        self.front.hush()
        end_at = self._clock() + HANDED_ON_WITHIN_S
        while self.broker.is_sending() and self._clock() < end_at:
            await asyncio.sleep(0.005)

    async def _until_sent(self) -> None:
        """Waits until what was written has left, but not for peers that do not read."""
        end_at = self._clock() + SENT_WITHIN_S
        while (self.front.busy() or self.links.busy()) and self._clock() < end_at:
            await asyncio.sleep(0.005)

    def _lay_wire(self, neighbour: Neighbour) -> None:
        wire = self.driver.add_wire(neighbour.name)
        if neighbour.emulate is None:
            return
        wire.emulation = Emulation(
            (self._config.name, neighbour.name),
            neighbour.emulate.conditions(),
            self._draws,
            self.origin,
            self._clock,
            wire,
            neighbour.emulate.processing_s,
        )

    async def _listen(
        self, accept: Callable[[], asyncio.Protocol], port_field: str, host_field: str = "host"
    ) -> int:
        host, port = getattr(self._config, host_field), getattr(self._config, port_field)
        try:
            server = await asyncio.get_running_loop().create_server(accept, host, port)
        except (OSError, UnicodeError) as error:
            raise self._deaf(error, port_field, host_field) from None
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _deaf(self, error: OSError | UnicodeError, port_field: str, host_field: str) -> ConfigError:
        """Why it cannot listen: because of the host, or of the port."""
        why = str(getattr(error, "strerror", None) or error)
        number = getattr(error, "errno", None)
        unknown = isinstance(error, socket.gaierror | UnicodeError)
        if unknown or number == errno.EADDRNOTAVAIL:
            return self._fault(host_field, f"a name or address of this machine (here: {why})")
        why = "is in use" if number == errno.EADDRINUSE else why
        host = getattr(self._config, host_field)
        accepted = f"a port of {host} to listen on (this one {why}), or 0 for any"
        return self._fault(port_field, accepted)

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(self._config.flush_s)
            self.trace.flush()
            self.driver.commit()
            self._flush_notices()

    def _flush_notices(self, ending: bool = False) -> None:
        """Tells of what was left out in the log."""
        self.links.notices.flush(ending)
        self.front.flush_notices(ending)
        self.driver.warnings.flush(ending)


def _incarnation(now: float) -> int:
    """A number that grows with every restart, as long as the wall clock is not set back. A machine
    that has no clock begins every day at the same instant, and would always give the same."""
    since = int((now - INCARNATIONS_SINCE) * 4)
    return since if since > UNDATED_INCARNATIONS else 1 + randbelow(UNDATED_INCARNATIONS)


def _life(config: BrokerConfig) -> str:
    """What tells this life's messages from those of all others, should its incarnation come again.
    Where links are emulated their ids follow from the incarnation alone: chance is drawn by them,
    and is to be the same in all runs of one seed."""
    return "" if any(neighbour.emulate for neighbour in config.neighbour) else token_hex(8)
