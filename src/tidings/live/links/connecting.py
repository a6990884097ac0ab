"""How do brokers find and keep each other? Overlay links over TCP.

Of each pair the broker with the smaller name dials, and dials again when the link is lost, after a
pause that doubles up to two seconds; the other accepts.
"""

from __future__ import annotations

import asyncio

from tidings.core.errors import SHOWN_CHARACTERS, WireError
from tidings.core.rng import Draws
from tidings.live.config import Neighbour
from tidings.live.driver import Driver
from tidings.live.links.connection import LinkConnection
from tidings.live.links.notices import LinkNotices, why_not_reached, why_silent
from tidings.live.links.wire import Wire

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
DIAL_WITHIN_S = 5.0


class LinkConnector:
    """Makes and keeps all links of one broker: dials some neighbours, is dialled by others."""

    def __init__(self, driver: Driver, neighbours: tuple[Neighbour, ...], draws: Draws) -> None:
        self.driver, self.me = driver, driver.broker.name
        self._draws, self.notices = draws, LinkNotices(driver.clock)
        driver.link_changed = self._changed
        self._neighbours = {neighbour.name: neighbour for neighbour in neighbours}
        self._tasks: list[asyncio.Task[None]] = []
        self._connections: set[LinkConnection] = set()

    def start(self) -> None:
        """Begin to dial those who wait for us."""
        for name, neighbour in self._neighbours.items():
            if self.me < name:
                self._tasks.append(asyncio.create_task(self._keep_dialling(neighbour)))

    def accept(self) -> LinkConnection:
        """The protocol of a connection that somebody opened to us."""
        return self._connection(None)

    def up(self) -> list[str]:
        """The neighbours that are connected."""
        return [name for name, wire in self.driver.wires.items() if wire.transport]

    def _changed(self, neighbour: str, up: bool) -> None:
        """What the broker thinks of a connection that is there."""
        if up:
            self.notices.answers(neighbour)
            return
        broker, settings = self.driver.broker, self.driver.broker.settings
        quiet_s = broker.quiet_s(neighbour, self.driver.clock())
        why = why_silent(quiet_s, settings.suspect_after_s, settings.probes_missed)
        self.notices.silent(neighbour, why)

    def busy(self) -> bool:
        """Whether somebody is connected."""
        return bool(self._connections)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections):
            connection.end()

    # ---- for connections

    def identify(self, name: str, expected: str | None) -> Wire:
        """The wire for a peer that says it has this name."""
        stated = repr(name[:SHOWN_CHARACTERS])
        if expected is not None and name != expected:
            raise WireError(f"it says it is {stated}, but {expected!r} was dialled")
        if name not in self._neighbours:
            known = ", ".join(self._neighbours) or "none"
            raise WireError(f"it says it is {stated}, but the neighbours here are: {known}")
        if expected is None and self.me < name:
            raise WireError(f"{name!r} dialled, but is to be dialled by {self.me!r}")
        wire = self.driver.wires[name]
        if wire.transport is not None:
            raise WireError(f"{name!r} is connected already")
        return wire

    def gone(self, connection: LinkConnection) -> None:
        self._connections.discard(connection)

    # ---- dialling

    def _connection(self, expected: str | None) -> LinkConnection:
        connection = LinkConnection(self, expected)
        self._connections.add(connection)
        return connection

    async def _keep_dialling(self, neighbour: Neighbour) -> None:
        failures = 0
        while True:
            why, fault = await self._dial(neighbour)
            failures = failures + 1 if why else 0
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures, 10))
            about = (self.me, neighbour.name, failures)
            pause_s *= self._draws.uniform(0.5, 1.0, "redial", *about)
            if why:
                self.notices.not_reached(neighbour, why, pause_s, fault)
            await asyncio.sleep(pause_s)

    async def _dial(self, neighbour: Neighbour) -> tuple[str, bool]:
        """One connection from its beginning to its end; if it never was a link, why not, and
        whether that is somebody's mistake."""
        loop = asyncio.get_running_loop()
        connection = self._connection(neighbour.name)
        place = (neighbour.host, neighbour.port)
        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                await loop.create_connection(lambda: connection, *place)
        except (OSError, UnicodeError) as error:
            self.gone(connection)
            return why_not_reached(error, DIAL_WITHIN_S)
        await connection.ended.wait()
        ended = "ended the connection before it was a link (its own log may say why)"
        return "" if connection.was_link else ended, False
