"""Who is not read just now, and why?

A publisher that fills the queue of a link waits until the queue is short again, so its own socket
fills and it has to wait, instead of losing what it says. Clients that publish nothing are always
read. And nobody is served for long without a turn of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidings.core.trace import Slowed
from tidings.live.driver import Driver
from tidings.live.mqtt.connection import MqttConnection
from tidings.mqtt.session import Request

# One read may bring thousands of publications. Others have their turn after this long: neighbours
# whose answers wait to be read would seem silent otherwise.
TURN_S = 0.005
LOOK_EVERY = 64  # publications: looking at the clock takes time, too

Handle = Callable[[MqttConnection, list[Request], float], None]


class Turns:
    """The clients that have to wait, the longest waiting first."""

    def __init__(self, driver: Driver, handle: Handle) -> None:
        """`handle(connection, requests, now)` serves a client whose turn has come."""
        self._driver, self._handle = driver, handle
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[MqttConnection, bool] = {}  # and whether queues are the reason
        self._ending = False

    def __contains__(self, connection: MqttConnection) -> bool:
        return connection in self._waiting

    def put_off(self, connection: MqttConnection, rest: list[Request], now: float) -> bool:
        """Whether the rest of what a client asks for has to wait: until queues are short again, or
        until others had their turn. The client is not read meanwhile."""
        crowded = bool(self._driver.broker.crowded)
        if self._ending or not (rest or crowded):
            return False
        connection.hold(rest, now)
        self._waiting[connection] = crowded
        if crowded:
            self._driver.when_roomy = self._go_on_with_all
        else:
            self._loop.call_soon(self._go_on, connection)
        return True

    def end(self) -> None:
        """Nobody waits any more."""
        self._ending = True
        self._go_on_with_all()

    def _go_on_with_all(self) -> None:
        for connection in list(self._waiting):
            self._go_on(connection)

    def _go_on(self, connection: MqttConnection) -> None:
        """Listen to a client again, to what it has asked for already first."""
        crowded = self._waiting.pop(connection, None)
        if crowded is None:  # somebody else was earlier
            return
        now = self._driver.clock()
        held, waited_s = connection.release(now)
        if crowded:
            me = self._driver.broker.name
            self._driver.record(Slowed(now, me, connection.client_id, waited_s))
        self._handle(connection, held, now)
