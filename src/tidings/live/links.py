"""How do brokers find and keep each other? Overlay links over TCP.

Of each pair the broker with the smaller name dials, and dials again when the link is lost, after a
pause that doubles up to two seconds; the other accepts. The first frame both ways is `Hello`. Who
is unknown, already here, silent or malformed is refused with one line, and everything else goes on.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import cast

from tidings.broker.codec import Decoder, encode
from tidings.broker.frames import Frame, Hello
from tidings.core.errors import TidingsError, WireError
from tidings.core.rng import Draws
from tidings.live.config import Neighbour
from tidings.live.driver import Driver
from tidings.live.wire import HIGH_WATER_BYTES, Wire

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
HELLO_WITHIN_S = 5.0
DIAL_WITHIN_S = 5.0
DEAD_AFTER_MS = 10_000  # written bytes that TCP gets no answer to for this long end the connection
TCP_NOTSENT_LOWAT = 25  # Linux; the name is in `socket` from Python 3.12

log = logging.getLogger("tidings.links")


class Links:
    """All links of one broker."""

    def __init__(self, driver: Driver, neighbours: tuple[Neighbour, ...], draws: Draws) -> None:
        self.driver, self.me = driver, driver.broker.name
        self._draws = draws
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

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections):
            connection.end()

    # ---- for connections

    def identify(self, name: str, expected: str | None) -> Wire:
        """The wire for a peer that says it has this name."""
        if expected is not None and name != expected:
            raise WireError(f"it says it is {name!r}, but {expected!r} was dialled")
        if name not in self._neighbours:
            known = ", ".join(self._neighbours) or "none"
            raise WireError(f"it says it is {name!r}, but the neighbours here are: {known}")
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
            failures = 0 if await self._dial(neighbour) else failures + 1
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures, 10))
            about = (self.me, neighbour.name, failures)
            await asyncio.sleep(pause_s * self._draws.uniform(0.5, 1.0, "redial", *about))

    async def _dial(self, neighbour: Neighbour) -> bool:
        """One connection from its beginning to its end; false if it never was a link."""
        loop = asyncio.get_running_loop()
        connection = self._connection(neighbour.name)
        place = (neighbour.host, neighbour.port)
        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                await loop.create_connection(lambda: connection, *place)
        except (OSError, TimeoutError):
            self.gone(connection)
            return False
        await connection.ended.wait()
        return connection.was_link


class LinkConnection(asyncio.Protocol):
    """One TCP connection, which becomes a link when both ends have said who they are."""

    def __init__(self, links: Links, expected: str | None) -> None:
        self._links, self._driver, self._expected = links, links.driver, expected
        self._decoder = Decoder()
        self._wire: Wire | None = None
        self._transport: asyncio.Transport | None = None
        self._hello_timer: asyncio.TimerHandle | None = None
        self.ended, self.was_link = asyncio.Event(), False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's own class is none of asyncio's
        self._transport = transport
        _tune(transport.get_extra_info("socket"))
        transport.write(encode(Hello(self._links.me)))
        loop = asyncio.get_running_loop()
        self._hello_timer = loop.call_later(HELLO_WITHIN_S, self._refuse, "it says nothing")

    def data_received(self, data: bytes) -> None:
        try:
            self._take(self._decoder.feed(data))
        except TidingsError as fault:
            self._refuse(str(fault))

    def pause_writing(self) -> None:
        if self._wire:
            self._wire.paused = True

    def resume_writing(self) -> None:
        if self._wire:
            self._wire.resume()

    def connection_lost(self, problem: Exception | None) -> None:
        self._cancel_timer()
        self._links.gone(self)
        if self._wire:
            self._wire.disconnected()
            self._driver.link_down(self._wire.neighbour)
        self.ended.set()

    def end(self) -> None:
        """Close, after what was written has left."""
        if self._transport:
            self._transport.close()

    def _take(self, frames: list[Hello | Frame]) -> None:
        """All frames of a read, in one round."""
        driver = self._driver
        for frame in frames:
            if isinstance(frame, Hello):
                self._greet(frame)
            elif self._wire is None:
                raise WireError("it begins with another frame than Hello")
            else:
                now = driver.clock()
                effects = driver.broker.receive(self._wire.neighbour, frame, now)
                driver.carry_out(effects, now)
        driver.settle()

    def _greet(self, hello: Hello) -> None:
        if self._wire is not None:
            raise WireError("it says Hello a second time")
        assert self._transport is not None
        wire = self._links.identify(hello.broker, self._expected)
        wire.connected(self._transport)
        self._wire, self.was_link = wire, True
        self._cancel_timer()
        self._driver.link_up(wire.neighbour)
        wire.open()

    def _refuse(self, problem: str) -> None:
        assert self._transport is not None
        peer = self._wire.neighbour if self._wire else self._transport.get_extra_info("peername")
        log.warning("a link connection from %s is closed: %s", peer, problem)
        self._transport.abort()

    def _cancel_timer(self) -> None:
        if self._hello_timer:
            self._hello_timer.cancel()
            self._hello_timer = None


def _tune(link: socket.socket) -> None:
    """Small frames leave at once, the kernel hoards little, and a dead peer is noticed."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (
        (TCP_NOTSENT_LOWAT, HIGH_WATER_BYTES),
        (getattr(socket, "TCP_USER_TIMEOUT", None), DEAD_AFTER_MS),
    ):
        if option is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux has both
            link.setsockopt(socket.IPPROTO_TCP, option, value)
