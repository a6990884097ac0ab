"""What would a wide-area network do to this frame? Emulated at the sending side of a link.

The physics is `core.links.weather`, the same that the simulator applies: a frame is lost, or held
back until the instant at which it would have arrived, and then written to a socket that delivers
almost at once. Frames leave in the order of those instants, by one timer for all. A link with a
limited rate takes one parcel at a time, so that messages wait in the broker's queue and not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Protocol

from tidings.broker.effects import Send
from tidings.broker.frames import Data, Probe
from tidings.core.links.conditions import Conditions
from tidings.core.links.weather import LinkWeather, occasion
from tidings.core.rng import Draws
from tidings.live.clock import TIMER_GRAIN_S, Clock


class Outlet(Protocol):
    """Where frames go when their time has come."""

    def put(self, data: bytes) -> None: ...
    def ready(self, room_bytes: float) -> None: ...


class Origin:
    """When the run began: emulated faults are timed from then, and before it there are none."""

    def __init__(self, started_at: float | None) -> None:
        self.started_at = inf if started_at is None else started_at


class Emulation:
    """One direction of one link under conditions that may change at run time."""

    def __init__(
        self,
        ends: tuple[str, str],
        conditions: Conditions,
        draws: Draws,
        origin: Origin,
        clock: Clock,
        outlet: Outlet,
        processing_s: float = 0.0,
    ) -> None:
        self._ends, self._draws, self._origin = ends, draws, origin
        self._clock, self._outlet, self._processing_s = clock, outlet, processing_s
        self._loop = asyncio.get_running_loop()
        self._held: list[tuple[float, int, bytes]] = []  # heap of (leaves at, serial, frame)
        self._serial = 0
        self._timers: dict[Callable[[], None], tuple[float, asyncio.TimerHandle]] = {}
        self.set_conditions(conditions)

    def set_conditions(self, conditions: Conditions) -> None:
        """Applies these from now on; frames that are under way arrive as planned before."""
        self._weather = LinkWeather(*self._ends, conditions, self._draws)
        self._calm = LinkWeather(*self._ends, Conditions(conditions.delay_s), self._draws)
        self._limited, self.room_bytes = conditions.limited, conditions.room_bytes

    def send(self, send: Send, data: bytes, now: float) -> None:
        """Put a frame on the emulated link."""
        arrives_at = self._arrival(send, now)
        if arrives_at is None:
            return
        self._serial += 1
        heappush(self._held, (arrives_at, self._serial, data))
        self._wake(self._release, self._held[0][0])

    def clear(self) -> None:
        """The connection is gone, and all that was under way with it."""
        self._held.clear()
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _arrival(self, send: Send, now: float) -> float | None:
        """When the frame is to arrive, on our clock; None: never."""
        started_at, frame = self._origin.started_at, send.frame
        since_s, weather = now - started_at, self._weather
        if since_s < 0:
            started_at, since_s, weather = 0.0, now, self._calm
        if not isinstance(frame, Data):
            arrival = weather.control_arrival(since_s)
            # A probe is processed like a message; else messages would seem slower than probes.
            handled_s = self._processing_s if isinstance(frame, Probe) else 0.0
            return None if arrival is None else started_at + arrival + handled_s
        envelope = frame.envelope
        crossing = occasion(envelope.restarts, len(envelope.path), send.attempt)
        arrival = weather.arrival(send.size_bytes, envelope.message.id, crossing, since_s)
        if self._limited:
            free_at = started_at + weather.free_at()
            self._wake(self._ready, max(now, free_at))
        return None if arrival is None else started_at + arrival + self._processing_s

    def _ready(self) -> None:
        self._outlet.ready(self.room_bytes)

    def _release(self) -> None:
        """Hand on what has arrived by now."""
        # Up to half a grain early, so that frames are on average neither early nor late.
        held, due_at = self._held, self._clock() + TIMER_GRAIN_S / 2
        while held and held[0][0] <= due_at:
            self._outlet.put(heappop(held)[2])
        if held:
            self._wake(self._release, held[0][0])

    def _wake(self, action: Callable[[], None], at: float) -> None:
        """Schedules an action for this instant, unless it is scheduled for an earlier one."""
        known = self._timers.get(action)
        if known and known[0] <= at:
            return
        if known:
            known[1].cancel()
        in_s = max(0.0, at - self._clock())
        self._timers[action] = (at, self._loop.call_later(in_s, self._fire, action))

    def _fire(self, action: Callable[[], None]) -> None:
        del self._timers[action]
        action()
