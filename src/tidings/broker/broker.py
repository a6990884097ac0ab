"""The broker: a state machine without I/O that both worlds run.

Named inputs and the time go in, a list of effects comes out, to be carried out in that order. A
message passes through it in one straight line:

    contract        is it still worth carrying?   no → Record(Dropped(reason))
    interests       who wants it?                 local → Deliver(subscriptions, message)
    routing         where next?                   → hops: a neighbour and the destinations it serves
    scheduling      wait for the link             → queue; when the link has room, the best leaves
    retransmission  wait for the answer           → Send(Data); no ACK in time → ask routing again

A broker acknowledges on receipt and answers for the message from then on. There is one timer: a
world calls `tick` when `wake_at` says so (earlier or later does no harm but to punctuality).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import floor, inf

from msgspec.structs import replace

from tidings.broker.effects import Deliver, Effect, Record, Send
from tidings.broker.frames import (
    CONTROL_BYTES,
    HEADER_BYTES,
    Ack,
    Data,
    Echo,
    Frame,
    Interests,
    Links,
    Probe,
    Pull,
)
from tidings.broker.interests import Interests as InterestTable
from tidings.broker.interests import News, Wanted
from tidings.broker.link import ACK, CONTROL, DATA, DISCARDED, PROBE, REPEAT, Link
from tidings.broker.linkstate import LinkState
from tidings.broker.monitor import Monitor
from tidings.broker.retransmission import Pending, Unanswered
from tidings.broker.settings import Settings
from tidings.core.contract import BEST_EFFORT, Contract, Destination, Subscription
from tidings.core.estimates import LinkEstimate
from tidings.core.memory import Memory
from tidings.core.message import SERIAL_BITS, Envelope, Message, MessageIds, Parcel, expiry
from tidings.core.topic import matches
from tidings.core.trace import (
    Acknowledged,
    Delivered,
    Dropped,
    Forwarded,
    LinkChanged,
    Probed,
    Published,
    Reason,
    Subscribed,
)
from tidings.routing import ROUTERS
from tidings.routing.base import Hop, Route, Router

COUNT_EVERY_S = 60.0  # what links carried is recorded by the minute
CONTROL_BACKOFF_LIMIT = 6  # a control frame is repeated for ever, at most 2^6 timeouts apart


class Broker:
    """One broker of the overlay: all protocol state, and no I/O."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        neighbours: Mapping[str, LinkEstimate | None],
        incarnation: int = 1,
    ) -> None:
        """`neighbours` are those this broker may have links to, with what is known of them;
        `incarnation` must grow with every restart under the same name."""
        self.name = name
        self.settings = settings
        self.message_ids = MessageIds(name, incarnation)
        self._links = {n: Link(n, settings, start) for n, start in sorted(neighbours.items())}
        self._routers: dict[str, Router] = {}
        self._interests = InterestTable(name, incarnation)
        self._link_state = LinkState(name, incarnation, settings.advertise_change)
        self._link_state.neighbours_changed((), tuple(self._links))
        self._view = self._link_state.view
        self._monitor = Monitor(name, settings)
        self._unanswered = Unanswered()
        self._transmission = incarnation << SERIAL_BITS  # restarts never repeat an id
        self._delivered = Memory(settings.remember_s)
        self._defaults: dict[str, Contract] = {}
        self._share_at = inf
        self._advertise_at = settings.advertise_every_s
        self._count_at = COUNT_EVERY_S
        self._chores_at = inf  # the earliest of all timers but retransmission's
        self._wake_at = inf  # the earliest of all; an answer that came in time does not move it
        self._hops = settings.trace == "hops"
        self._measured = settings.estimates == "measured"

    # ---- inputs from clients

    def publish(self, message: Message, now: float) -> list[Effect]:
        """A client of this broker says something."""
        wanted = self._interests.wanted(message)
        contract = message.contract
        strategy = contract.strategy or self.settings.strategy
        size_bytes = len(message.payload)
        published = Published(
            now,
            self.name,
            message.id,
            message.topic,
            size_bytes,
            contract.deadline_s,
            contract.price,
            strategy,
            wanted.everyone,
        )
        effects: list[Effect] = [Record(published)]
        if wanted.local_ids:
            self._deliver(message, wanted, now, 0, now, effects)
        if wanted.remote:
            owed = wanted.destinations(contract)
            size_bytes += HEADER_BYTES + len(message.topic)
            path = (self.name,)
            parcel = Parcel(message, now, expiry(now, owed), owed, path, strategy, size_bytes)
            self._forward(parcel, now, effects)
        return effects

    def subscribe(self, subscription: Subscription, now: float) -> list[Effect]:
        """A client of this broker wants messages. Its id must be new, or replaces the old wish."""
        self._interests.subscribe(subscription)
        self._share_soon(now)
        return [self._subscribed(subscription, True, now)]

    def unsubscribe(self, subscription_id: str, now: float) -> list[Effect]:
        """A client's wish has ended."""
        ended = self._interests.unsubscribe(subscription_id)
        if ended is None:
            return []
        self._share_soon(now)
        return [self._subscribed(ended, False, now)]

    def default_contract(self, topic: str) -> Contract:
        """What holds for a message whose publisher states nothing: the first policy that fits."""
        contract = self._defaults.get(topic)
        if contract is None:
            fitting = (p.contract for p in self.settings.policies if matches(p.topic, topic))
            contract = next(fitting, BEST_EFFORT)
            if len(self._defaults) < 10_000:  # topics may be endless, memory is not
                self._defaults[topic] = contract
        return contract

    # ---- inputs from links

    def receive(self, neighbour: str, frame: Frame, now: float) -> list[Effect]:
        """A frame has come in from a neighbour."""
        link = self._links[neighbour]
        effects: list[Effect] = []
        match frame:
            case Ack():
                if pending := self._unanswered.answered(frame.transmission):
                    self._acknowledged(link, pending, now, effects)
            case Data():
                self._data(link, frame, now, effects)
            case Probe():
                self._send(link, Echo(frame.serial), PROBE, effects)
            case Echo():
                self._echoed(link, frame, now, effects)
            case Interests() | Links() | Pull():
                self._send(link, Ack(frame.transmission), ACK, effects)
                if link.seen.repeated(frame.transmission, now):
                    link.count(DISCARDED, CONTROL_BYTES)
                else:
                    self._control(link, frame, now, effects)
        return effects

    def link_up(self, neighbour: str, now: float) -> list[Effect]:
        """The link to a neighbour works (again): tell it all that is known."""
        effects: list[Effect] = []
        self._monitor.start(neighbour, now)
        self._turn(self._links[neighbour], True, now, effects)
        self._introduce(self._links[neighbour], now, effects)
        return effects

    def link_down(self, neighbour: str, now: float) -> list[Effect]:
        """The link to a neighbour is gone, and with it all answers that were expected."""
        link = self._links[neighbour]
        effects: list[Effect] = []
        self._monitor.stop(neighbour)
        self._turn(link, False, now, effects)
        link.room_bytes, link.unacknowledged_bytes = 0.0, 0
        unanswered = [lost.parcel for lost in self._unanswered.forget(neighbour) if lost.parcel]
        waiting = list(iter(lambda: link.queue.pop(now), None))
        for parcel in unanswered + waiting:
            self._give_up(parcel, neighbour, Reason.LINK_DOWN, now, effects)
        return effects

    def link_ready(self, neighbour: str, room_bytes: float, now: float) -> list[Effect]:
        """The link can take this many bytes from now on; the last parcel may overshoot."""
        link = self._links[neighbour]
        link.room_bytes = room_bytes
        effects: list[Effect] = []
        self._pump(link, now, effects)
        return effects

    # ---- time

    def wake_at(self) -> float:
        """When `tick` may have something to do: never too late, at times too early."""
        return self._wake_at

    def tick(self, now: float) -> list[Effect]:
        """Time has passed."""
        effects: list[Effect] = []
        for _, pending in self._unanswered.overdue(now):
            self._unacknowledged(pending, now, effects)
        if self._chores_at <= now:
            self._chores(now, effects)
        self._wake_at = min(self._chores_at, self._unanswered.first_due())
        return effects

    def close(self, now: float) -> list[Effect]:
        """The last rows of a broker that ends in good order."""
        return list(self._carried(now))

    def holding(self) -> Iterator[Parcel]:
        """All parcels this broker answers for: in queues, or sent and not acknowledged."""
        for link in self._links.values():
            yield from link.queue
        yield from self._unanswered.parcels()

    # ---- the straight line

    def _data(self, link: Link, frame: Data, now: float, effects: list[Effect]) -> None:
        link.count(ACK, CONTROL_BYTES)
        effects.append(Send(link.neighbour, Ack(frame.transmission), CONTROL_BYTES, 1))
        if link.seen.repeated(frame.transmission, now):
            link.count(DISCARDED, CONTROL_BYTES)
            return
        envelope = frame.envelope
        message, owed = envelope.message, envelope.destinations
        born_at = now - envelope.age_s - link.delay_s
        for destination in owed:
            if destination.broker == self.name:
                if not self._delivered.repeated(message.id, now):
                    wanted = self._interests.wanted(message)
                    self._deliver(message, wanted, born_at, len(envelope.path), now, effects)
                if len(owed) == 1:
                    return
                owed = tuple([other for other in owed if other is not destination])
                break
        path, strategy = (*envelope.path, self.name), envelope.strategy
        size_bytes = HEADER_BYTES + len(message.topic) + len(message.payload)
        parcel = Parcel(message, born_at, expiry(born_at, owed), owed, path, strategy, size_bytes)
        self._forward(parcel, now, effects)

    def _deliver(
        self,
        message: Message,
        wanted: Wanted,
        born_at: float,
        hops: int,
        now: float,
        effects: list[Effect],
    ) -> None:
        takers, age_s = wanted.local_ids, now - born_at
        if message.contract.late == "drop" or not wanted.takes_late:
            takers = self._in_time(message.contract, wanted, age_s)
            if len(takers) < len(wanted.local_ids):
                effects.append(self._dropped(message, Reason.EXPIRED, (self.name,), now))
        if takers:
            effects.append(Deliver(takers, message, age_s))
            effects.append(Record(Delivered(now, self.name, message.id, age_s, hops, takers)))

    def _in_time(self, contract: Contract, wanted: Wanted, age_s: float) -> tuple[str, ...]:
        """The local subscriptions that take a message of this age."""
        return tuple(
            wish.id
            for wish in wanted.local
            if age_s <= min(contract.deadline_s, wish.contract.deadline_s)
            or (contract.late == "deliver" and wish.contract.late == "deliver")
        )

    def _forward(self, parcel: Parcel, now: float, effects: list[Effect]) -> None:
        router = self._routers.get(parcel.strategy) or self._router(parcel.strategy)
        if router is None:
            effects.append(self._drop(parcel, Reason.UNKNOWN_STRATEGY, now))
            return
        route = router.route(parcel, self._view, now)
        self._follow(route, parcel, Reason.NO_ROUTE, now, effects)

    def _follow(
        self, route: Route, parcel: Parcel, reason: str, now: float, effects: list[Effect]
    ) -> None:
        for hop in route.hops:
            link = self._links[hop.neighbour]
            copy = parcel if hop.destinations is parcel.destinations else _split(parcel, hop)
            if len(link.queue) >= self.settings.queue_parcels:
                effects.append(self._drop(copy, Reason.QUEUE_FULL, now))
                continue
            link.queue.push(copy, now)
            self._pump(link, now, effects)
        if route.stranded:
            owed = _brokers(route.stranded)
            effects.append(self._dropped(parcel.message, reason, owed, now))

    def _pump(self, link: Link, now: float, effects: list[Effect]) -> None:
        """Let parcels leave, best first, for as long as the link takes them."""
        window_bytes = self.settings.window_bytes
        while link.room_bytes > 0 and link.unacknowledged_bytes < window_bytes:
            parcel = link.queue.pop(now)
            if parcel is None:
                return
            if parcel.expires_at < now:
                effects.append(self._drop(parcel, Reason.EXPIRED, now))
                continue
            self._transmission += 1
            frame = _data_frame(self._transmission, parcel, now)
            size_bytes = parcel.size_bytes
            link.room_bytes -= size_bytes
            link.unacknowledged_bytes += size_bytes
            pending = Pending(link.neighbour, frame, parcel, size_bytes, now)
            self._transmit(link, pending, frame, DATA, now, effects)

    def _transmit(
        self,
        link: Link,
        pending: Pending,
        frame: Data,
        kind: int,
        now: float,
        effects: list[Effect],
    ) -> None:
        until, size_bytes = now + link.timeout_s, pending.size_bytes
        self._unanswered.wait(frame.transmission, pending, until)
        if until < self._wake_at:
            self._wake_at = until
        link.carried_frames[kind] += 1
        link.carried_bytes[kind] += size_bytes
        effects.append(Send(link.neighbour, frame, size_bytes, pending.attempt))
        if self._hops:
            effects.append(Record(self._forwarded(link, pending, frame, now)))

    def _forwarded(self, link: Link, pending: Pending, frame: Data, now: float) -> Forwarded:
        envelope = frame.envelope
        return Forwarded(
            now,
            self.name,
            envelope.message.id,
            link.neighbour,
            frame.transmission,
            pending.attempt,
            len(envelope.destinations),
            pending.size_bytes,
        )

    def _acknowledged(
        self, link: Link, pending: Pending, now: float, effects: list[Effect]
    ) -> None:
        if pending.parcel is not None:
            link.unacknowledged_bytes -= pending.size_bytes
            if self._hops:
                effects.append(Record(self._answer(link, pending, now)))
        if self._measured and pending.attempt == 1:
            self._measure(link, now - pending.sent_at, now)  # Karn: a repeat's answer tells no time
        if link.queue:
            self._pump(link, now, effects)
        if not self._unanswered:
            self._wake_at = self._chores_at

    def _answer(self, link: Link, pending: Pending, now: float) -> Acknowledged:
        transmission, round_trip_s = pending.frame.transmission, now - pending.sent_at
        return Acknowledged(now, self.name, link.neighbour, transmission, round_trip_s)

    def _unacknowledged(self, pending: Pending, now: float, effects: list[Effect]) -> None:
        link, parcel = self._links[pending.neighbour], pending.parcel
        pending.attempt += 1
        if parcel is None:
            self._tell_again(link, pending, now, effects)
        elif parcel.expires_at < now:
            link.unacknowledged_bytes -= pending.size_bytes
            effects.append(self._drop(parcel, Reason.EXPIRED, now))
            self._pump(link, now, effects)
        elif pending.attempt <= self.settings.transmissions:
            frame = _data_frame(pending.frame.transmission, parcel, now)
            self._transmit(link, pending, frame, REPEAT, now, effects)
        else:
            link.unacknowledged_bytes -= pending.size_bytes
            self._give_up(parcel, pending.neighbour, Reason.UNACKNOWLEDGED, now, effects)
            self._pump(link, now, effects)

    def _give_up(
        self, parcel: Parcel, neighbour: str, reason: str, now: float, effects: list[Effect]
    ) -> None:
        """A neighbour cannot be reached: does the strategy know another way?"""
        router = self._routers[parcel.strategy]
        route = router.reroute(parcel, neighbour, self._view, now)
        self._follow(route, parcel, reason, now, effects)

    # ---- control: interests, links, probes

    def _control(
        self, link: Link, frame: Interests | Links | Pull, now: float, effects: list[Effect]
    ) -> None:
        match frame:
            case Links():
                if self._link_state.apply(frame):
                    self._spread(frame, link.neighbour, now, effects)
            case Interests():
                news = self._interests.apply(frame)
                if news is News.NEW:
                    self._spread(frame, link.neighbour, now, effects)
                elif news is News.GAP:
                    self._tell(link, Pull(0, frame.origin), now, effects)
            case Pull():
                if whole := self._interests.whole(frame.origin):
                    self._tell(link, whole, now, effects)

    def _share(self, now: float, effects: list[Effect]) -> None:
        """Tell the overlay what changed here, all at once."""
        self._share_at = inf
        estimates = {n: e for n, link in self._links.items() if link.up and (e := link.estimate)}
        if links := self._link_state.advertise(estimates):
            self._spread(links, "", now, effects)
        if changes := self._interests.changes():
            self._spread(changes, "", now, effects)

    def _spread(
        self, frame: Interests | Links, heard_from: str, now: float, effects: list[Effect]
    ) -> None:
        for neighbour, link in self._links.items():
            if link.up and neighbour != heard_from:
                self._tell(link, frame, now, effects)

    def _tell(
        self, link: Link, frame: Interests | Links | Pull, now: float, effects: list[Effect]
    ) -> None:
        """Send a control frame that is repeated until it is acknowledged."""
        self._transmission += 1
        numbered = replace(frame, transmission=self._transmission)
        pending = Pending(link.neighbour, numbered, None, CONTROL_BYTES, now)
        self._insist(link, pending, now + link.timeout_s, effects)

    def _tell_again(self, link: Link, pending: Pending, now: float, effects: list[Effect]) -> None:
        patience_s = link.timeout_s * 2 ** min(pending.attempt - 1, CONTROL_BACKOFF_LIMIT)
        self._insist(link, pending, now + patience_s, effects)

    def _insist(self, link: Link, pending: Pending, until: float, effects: list[Effect]) -> None:
        self._unanswered.wait(pending.frame.transmission, pending, until)
        self._wake_at = min(self._wake_at, until)
        self._send(link, pending.frame, CONTROL, effects, pending.attempt)

    def _chores(self, now: float, effects: list[Effect]) -> None:
        """All that is done by the clock, apart from repeating what was not acknowledged."""
        self._watch(now, effects)
        if self._advertise_at <= now:
            self._advertise_at = now + self.settings.advertise_every_s
            self._share(now, effects)
        elif self._share_at <= now:
            self._share(now, effects)
        if self._count_at <= now:
            self._count_at = (floor(now / COUNT_EVERY_S) + 1) * COUNT_EVERY_S
            effects += self._carried(now)
        self._plan_chores()

    def _plan_chores(self) -> None:
        advertise_at = self._advertise_at if self._measured else inf
        monitor_at = self._monitor.next_at()
        self._chores_at = min(self._share_at, self._count_at, advertise_at, monitor_at)
        self._wake_at = min(self._wake_at, self._chores_at)

    def _watch(self, now: float, effects: list[Effect]) -> None:
        """Probe whom it is time to probe, and notice who is silent."""
        for neighbour, lost in self._monitor.silent(now):
            link = self._links[neighbour]
            link.meter.probed(answered=False)
            if self._hops:
                effects.append(Record(Probed(now, self.name, neighbour, float("nan"))))
            if lost:
                self._turn(link, False, now, effects)
        for neighbour, serial in self._monitor.due(now):
            self._send(self._links[neighbour], Probe(serial), PROBE, effects)

    def _echoed(self, link: Link, echo: Echo, now: float, effects: list[Effect]) -> None:
        round_trip_s = self._monitor.answered(link.neighbour, echo.serial, now)
        if round_trip_s is None:
            return
        self._plan_chores()
        link.meter.probed(answered=True)
        self._measure(link, round_trip_s, now)
        if self._hops:
            effects.append(Record(Probed(now, self.name, link.neighbour, round_trip_s)))
        if not link.up:
            self._turn(link, True, now, effects)
            self._introduce(link, now, effects)

    def _measure(self, link: Link, round_trip_s: float, now: float) -> None:
        """Learn from an answer; a link of which nothing was known is news to the overlay."""
        unknown = not link.known
        link.meter.answered(round_trip_s)
        link.remeasure()
        if unknown:
            self._share_soon(now)

    def _turn(self, link: Link, up: bool, now: float, effects: list[Effect]) -> None:
        """A link goes up or down, by what the world or the monitor says."""
        if link.up != up:
            effects.append(Record(LinkChanged(now, self.name, link.neighbour, up)))
        link.up = up
        self._neighbours_changed(now)

    def _introduce(self, link: Link, now: float, effects: list[Effect]) -> None:
        """Tell a neighbour all that is known: it may have missed any of it."""
        for links in self._link_state.all():
            self._tell(link, links, now, effects)
        for origin in self._interests.origins():
            if whole := self._interests.whole(origin):
                self._tell(link, whole, now, effects)

    # ---- small helpers

    def _router(self, strategy: str) -> Router | None:
        factory = ROUTERS.get(strategy)
        if factory is None:
            return None
        self._routers[strategy] = factory()
        return self._routers[strategy]

    def _neighbours_changed(self, now: float) -> None:
        up = tuple(neighbour for neighbour, link in self._links.items() if link.up)
        down = tuple(neighbour for neighbour, link in self._links.items() if not link.up)
        self._link_state.neighbours_changed(up, down)
        self._share_soon(now)

    def _share_soon(self, now: float) -> None:
        self._share_at = min(self._share_at, now + self.settings.batch_s)
        self._plan_chores()

    def _send(
        self, link: Link, frame: Frame, kind: int, effects: list[Effect], attempt: int = 1
    ) -> None:
        link.count(kind, CONTROL_BYTES)
        effects.append(Send(link.neighbour, frame, CONTROL_BYTES, attempt))

    def _carried(self, at: float) -> Iterator[Effect]:
        for link in self._links.values():
            yield from map(Record, link.carried(self.name, at))

    def _subscribed(self, wish: Subscription, active: bool, now: float) -> Effect:
        contract = wish.contract
        return Record(
            Subscribed(
                now,
                self.name,
                wish.id,
                wish.topic,
                wish.where,
                contract.deadline_s,
                contract.price,
                active,
            )
        )

    def _drop(self, parcel: Parcel, reason: str, now: float) -> Effect:
        return self._dropped(parcel.message, reason, _brokers(parcel.destinations), now)

    def _dropped(
        self, message: Message, reason: str, destinations: tuple[str, ...], now: float
    ) -> Effect:
        return Record(Dropped(now, self.name, message.id, reason, destinations))


def _brokers(destinations: Iterable[Destination]) -> tuple[str, ...]:
    return tuple(destination.broker for destination in destinations)


def _split(parcel: Parcel, hop: Hop) -> Parcel:
    """The part of a parcel that goes one way."""
    owed, born_at = hop.destinations, parcel.born_at
    return Parcel(
        parcel.message,
        born_at,
        expiry(born_at, owed),
        owed,
        parcel.path,
        parcel.strategy,
        parcel.size_bytes,
    )


def _data_frame(transmission: int, parcel: Parcel, now: float) -> Data:
    age_s = now - parcel.born_at
    return Data(
        transmission,
        Envelope(parcel.message, age_s, parcel.destinations, parcel.path, parcel.strategy),
    )
