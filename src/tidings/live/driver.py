"""How does a state machine run in the real world? Inputs in, effects carried out, one timer.

All that one read brings is given to the broker first; then what it wants sent is written, once per
link and once per client, and the timer is set. Nothing is awaited, so rounds never overlap.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import assert_never

from tidings.broker.broker import Broker
from tidings.broker.effects import Deliver, Effect, Record, Send
from tidings.live.clock import Clock
from tidings.live.deliveries import Deliveries
from tidings.live.tracefiles import TraceFiles
from tidings.live.wire import Wire

TIMER_GRAIN_S = 0.001  # of the event loop; less would be a busy loop


class Driver:
    """One broker, and the world that carries out its effects."""

    def __init__(
        self, broker: Broker, clock: Clock, trace: TraceFiles, deliveries: Deliveries
    ) -> None:
        self.broker, self.clock = broker, clock
        self.wires: dict[str, Wire] = {}
        self._trace, self._rows = trace, trace.rows
        self._deliveries, self._deliver = deliveries, deliveries.add
        self._dirty: list[Wire] = []
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at = inf

    def add_wire(self, neighbour: str) -> Wire:
        wire = self.wires[neighbour] = Wire(neighbour, self.link_ready, self._dirty)
        return wire

    def carry_out(self, effects: list[Effect], now: float) -> None:
        """Do what the broker wants, in its order; `settle` must follow in the same round."""
        rows = self._rows
        for effect in effects:
            if type(effect) is Record:  # by far the most
                rows[type(effect.row)].append(effect.row)
            elif type(effect) is Deliver:
                self._deliver(effect)
            elif type(effect) is Send:
                self.wires[effect.neighbour].send(effect, now)
            else:
                assert_never(effect)

    def settle(self) -> None:
        """The end of a round: write what was gathered, and set the timer."""
        self._deliveries.flush()
        if self._dirty:
            for wire in self._dirty:
                wire.flush()
            self._dirty.clear()
        self._trace.relieve()
        self._set_timer()

    # ---- inputs that are a round of their own

    def link_up(self, neighbour: str) -> None:
        now = self.clock()
        self.carry_out(self.broker.link_up(neighbour, now), now)
        self.settle()

    def link_down(self, neighbour: str) -> None:
        now = self.clock()
        self.carry_out(self.broker.link_down(neighbour, now), now)
        self.settle()

    def link_ready(self, neighbour: str, room_bytes: float) -> None:
        now = self.clock()
        self.carry_out(self.broker.link_ready(neighbour, room_bytes, now), now)
        self.settle()

    def close(self) -> None:
        """The broker ends in good order."""
        if self._timer:
            self._timer.cancel()
        self._wake_at = -inf  # nothing is earlier: no timer is set any more
        now = self.clock()
        self.carry_out(self.broker.close(now), now)

    # ---- time

    def _set_timer(self) -> None:
        """One timer; it only ever moves to an earlier instant: waking for nothing does no harm."""
        wake_at = self.broker.wake_at()
        if wake_at >= self._wake_at:
            return
        if self._timer:
            self._timer.cancel()
        self._wake_at = wake_at
        in_s = max(TIMER_GRAIN_S, wake_at - self.clock())
        self._timer = self._loop.call_later(in_s, self._tick)

    def _tick(self) -> None:
        self._timer, self._wake_at = None, inf
        now = self.clock()
        self.carry_out(self.broker.tick(now), now)
        self.settle()
