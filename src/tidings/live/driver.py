"""How does a state machine run in the real world? Inputs in, effects carried out, one timer.

All that one read brings is one round. It is given to the broker first; then what the broker wants
stored is committed, what it wants sent is written, once per link and once per client, and the timer
is set. What is carried out while no round is open is a round of its own, so a caller cannot leave
one unfinished. Nothing is awaited, so rounds never overlap, and nothing leaves before the commit:
no frame, emulated links included, and no answer to a client.

If the disk takes no more, no round is carried out any more: all links are cut, and the clients that
would have been answered, so that nothing is acknowledged that was not stored. Neighbours keep what
is theirs, and the broker is to end.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from math import inf
from typing import assert_never

from tidings.broker.broker import Broker
from tidings.broker.effects import Close, Deliver, Effect, Forget, Open, Record, Send, Store, Warn
from tidings.core.links.estimates import LinkEstimate
from tidings.core.trace import Dropped, LinkChanged, Row
from tidings.live.clock import TIMER_GRAIN_S, Clock
from tidings.live.links.wire import Wire
from tidings.live.mqtt.deliveries import Deliveries
from tidings.live.rate_limited import RateLimitedWarnings
from tidings.live.store import MessageStore, StoreError
from tidings.traces.live_files import TraceFiles

LATE_S = 0.002  # a timer that fires later than this says that the process was held up
LONGEST_EXCUSE_S = 0.25

logger = logging.getLogger("tidings.store")


class Round:
    """While it is open, what is carried out is settled only at its end; then always."""

    __slots__ = ("_settle", "is_open")

    def __init__(self, settle: Callable[[], None]) -> None:
        self._settle, self.is_open = settle, False

    def __enter__(self) -> None:
        assert not self.is_open, "rounds never overlap"
        self.is_open = True

    def __exit__(self, *problem: object) -> None:
        self.is_open = False
        self._settle()


class Driver:
    """One broker, and the world that carries out its effects."""

    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        trace: TraceFiles,
        deliveries: Deliveries,
        store: MessageStore,
        fail: Callable[[], None],
    ) -> None:
        """`fail()` is called once if nothing can be stored any more: the broker is to end."""
        self.broker, self.clock = broker, clock
        self.wires: dict[str, Wire] = {}
        self.dropped = Counter[str]()  # copies of messages that were given up, by reason
        self._trace, self._rows = trace, trace.rows
        self._deliveries, self._deliver = deliveries, deliveries.add
        self._store, self._fail, self.failed = store, fail, False
        self.warnings = RateLimitedWarnings(logging.getLogger("tidings.broker"), clock)
        self.link_changed: Callable[[str, bool], None] = lambda neighbour, up: None
        self.open_link: Callable[[str, str], None] = lambda neighbour, address: None
        self.close_link: Callable[[str], None] = lambda neighbour: None
        self.silent: set[str] = set()  # neighbours that are connected and say nothing; mostly none
        self.round = Round(self._settle)
        self._dirty: list[Wire] = []
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at = self._set_for = inf  # as the broker asked, and as the timer was set
        self._excused = False  # whether a late timer has waited once already
        self.when_roomy: Callable[[], None] | None = None  # called once, when queues are short

    def add_wire(self, neighbour: str) -> Wire:
        """Before the first link to a neighbour comes up."""
        wire = self.wires[neighbour] = Wire(neighbour, self.link_ready, self._dirty)
        return wire

    def carry_out(self, effects: list[Effect], now: float) -> None:
        """Do what the broker wants, in its order; then settle, unless a round is open."""
        rows = self._rows
        for effect in effects:
            if type(effect) is Record:  # by far the most
                row = effect.row
                rows[type(row)].append(row)
                if type(row) is Dropped:
                    self.dropped[row.reason] += 1
            elif type(effect) is Deliver:
                self._deliver(effect)
            elif type(effect) is Send:
                self.wires[effect.neighbour].send(effect, now)
            elif type(effect) is Store:
                self._store.keep(effect.parcel, now)
            elif type(effect) is Forget:
                self._store.forget(effect.message, effect.destinations)
            elif type(effect) is Open:
                self.open_link(effect.neighbour, effect.address)
            elif type(effect) is Close:
                self.close_link(effect.neighbour)
            elif type(effect) is Warn:
                self.warnings.warn(effect.text)
            else:
                assert_never(effect)
        if not self.round.is_open:
            self._settle()

    def _settle(self) -> None:
        """The end of a round: store, then write what was gathered, and set the timer."""
        if (self._store.urgent or self.failed) and not self.commit():
            return
        self._deliveries.flush()
        if self._dirty:
            for wire in self._dirty:
                wire.flush()
            self._dirty.clear()
        self._trace.relieve()
        self._set_timer()
        if self.when_roomy and not self.broker.crowded:
            self._loop.call_soon(self.when_roomy)  # a round of its own
            self.when_roomy = None

    def record(self, row: Row) -> None:
        """Write a row about something that the broker does not know of."""
        self._rows[type(row)].append(row)

    def commit(self) -> bool:
        """Puts on the disk what the broker wants there; if that fails, nothing leaves any more."""
        try:
            self._store.commit()
        except StoreError as failure:
            for wire in self.wires.values():
                wire.cut()
            self._dirty.clear()
            self._deliveries.cut()
            if not self.failed:
                self.failed = True
                logger.error("%s. No durable message can be kept, so this broker ends.", failure)
                self._fail()
            return False
        return True

    # ---- inputs

    def link_up(self, neighbour: str, known: LinkEstimate | None) -> None:
        now = self.clock()
        self.carry_out(self.broker.link_up(neighbour, now, known), now)

    def link_refused(self, neighbour: str) -> None:
        now = self.clock()
        self.carry_out(self.broker.link_refused(neighbour, now), now)

    def member_found(self, name: str) -> None:
        now = self.clock()
        self.carry_out(self.broker.member_found(name, now), now)

    def link_down(self, neighbour: str) -> None:
        now = self.clock()
        self.silent.discard(neighbour)
        self.carry_out(self.broker.link_down(neighbour, now), now)

    def link_ready(self, neighbour: str, room_bytes: float) -> None:
        now = self.clock()
        self.carry_out(self.broker.link_ready(neighbour, room_bytes, now), now)

    def notice_links(self, effects: list[Effect]) -> None:
        """Tells whoever wants to know which links have fallen silent, or answer again."""
        for effect in effects:
            if type(effect) is Record and type(effect.row) is LinkChanged:
                neighbour, up = effect.row.neighbour, effect.row.up
                (self.silent.discard if up else self.silent.add)(neighbour)
                self.link_changed(neighbour, up)

    def leave(self) -> None:
        """The others shall look for no links to this broker any more."""
        now = self.clock()
        self.carry_out(self.broker.leave(now), now)

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
        now = self.clock()
        in_s = max(TIMER_GRAIN_S, wake_at - now)
        self._set_for = now + in_s
        self._timer = self._loop.call_later(in_s, self._tick)

    def _tick(self) -> None:
        now = self.clock()
        late_s = now - self._set_for
        if late_s > LATE_S and not self._excused:
            # This process was held up: answers that came in time may wait to be read, and the
            # event loop fires timers first. Before anybody's patience ends, they get as much time
            # as was lost; neighbours on this machine were probably held up as well.
            self._excused = True
            in_s = min(max(TIMER_GRAIN_S, late_s), LONGEST_EXCUSE_S)
            self._timer = self._loop.call_later(in_s, self._tick)
            return
        self._timer, self._wake_at, self._excused = None, inf, False
        effects = self.broker.tick(now)
        self.notice_links(effects)
        self.carry_out(effects, now)
