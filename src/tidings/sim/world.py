"""The simulator: carries out the effects of real brokers in virtual time.

It knows when frames arrive, links fail, brokers die and publishers speak; what a broker makes of it
is the broker's own code, the same that the live world runs. One seed, one trace.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from math import inf
from typing import assert_never

from tidings.broker.broker import Broker
from tidings.broker.control.linkage import Whereabouts
from tidings.broker.effects import Close, Deliver, Effect, Forget, Open, Record, Send, Store, Warn
from tidings.broker.frames import Ack, Data, Frame, Probe
from tidings.core.contract import BEST_EFFORT
from tidings.core.links.estimates import LinkEstimate
from tidings.core.links.weather import LinkWeather, occasion
from tidings.core.message import Envelope, Message
from tidings.core.parcel import Parcel
from tidings.core.trace import Dropped, Published, Reason, Row, Slowed, Subscribed
from tidings.core.values import Value
from tidings.sim.agenda import ARRIVAL, FAULT, PUBLICATION, READY, WAKE, Agenda
from tidings.sim.checkers import Checker
from tidings.sim.disk import Disk
from tidings.sim.result import Result
from tidings.sim.scenario import Speaker
from tidings.sim.setup import Setup
from tidings.sim.underlay import Underlay
from tidings.sim.workload import Publication, publications
from tidings.traces.recorder import Recorder, Sink

MOST_WARNINGS = 1_000
UNANSWERED_S = 1.0  # after which a broker that dials gives up
LEAVING_S = 1.0  # from the moment the clients of a broker go to its end


class _Node:
    """A broker and its place in the physical world."""

    __slots__ = (
        "alarms",
        "alive",
        "broker",
        "disk",
        "incarnation",
        "name",
        "slowed",
        "wake_at",
        "wires",
    )

    def __init__(self, name: str, broker: Broker) -> None:
        self.name, self.broker, self.incarnation, self.alive = name, broker, 1, True
        self.wake_at = inf  # when it wants to be woken
        self.alarms: set[float] = set()  # instants at which it will be, in time or for nothing
        self.wires: dict[str, _Wire] = {}
        self.disk = Disk()
        self.slowed: list[_Slowed] = []  # publishers whom the broker does not listen to just now


class _Wire:
    """One direction of a link."""

    __slots__ = ("limited", "mean_s_per_byte", "receiver", "room_bytes", "up", "varies", "weather")

    def __init__(self, receiver: _Node, weather: LinkWeather, up: bool = True) -> None:
        self.receiver, self.weather, self.up = receiver, weather, up
        self.limited, self.room_bytes = weather.conditions.limited, weather.conditions.room_bytes
        self.mean_s_per_byte = weather.conditions.s_per_byte
        self.varies = weather.conditions.deviation_s_per_byte > 0.0


class _Said(Value, frozen=True):
    """What a broker has heard from a publisher and still has to process."""

    publisher: Speaker
    what: Publication
    at: float
    incarnation: int  # of the broker that heard it


class _Slowed(Value, frozen=True):
    """A publisher that has something to say to a broker that does not listen."""

    publisher: Speaker
    coming: Iterator[Publication]
    what: Publication
    since: float


def _timed(frame: Data, slower_s: float) -> Data:
    """The frame as its receiver takes it. A receiver computes a message's age from the link's mean
    rate; but it sees the first byte and the last, so it knows how much slower this frame was."""
    return Data(frame.transmission, frame.envelope.older(slower_s))


def discard(table: str, batch: object) -> None:
    """The sink of a run whose rows nobody keeps."""


def simulate(
    setup: Setup,
    run: str = "",
    sink: Sink = discard,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Run a scenario to its end. `progress` is told the part that is done, now and then."""
    world = World(setup, Recorder(run or setup.scenario.run.name, "sim", sink))
    gc.disable()  # a run makes millions of small values and no cycles: counting frees them all
    try:
        return world.run(progress)
    finally:
        gc.enable()


class World:
    """All brokers of a scenario, and the network between them."""

    def __init__(self, setup: Setup, recorder: Recorder) -> None:
        scenario = setup.scenario
        self._setup, self._scenario, self._recorder = setup, scenario, recorder
        self._load, self._outages = setup.load, setup.outages
        self._agenda = Agenda()
        source, remember_s = scenario.source or scenario.run.name, setup.settings.remember_s
        self._moves = scenario.dynamics.moves or scenario.links_itself
        self._checker = Checker(source, scenario.run.seed, remember_s, self._moves)
        self._processing_s = scenario.links.processing_s
        self._first_processing_s = scenario.links.first_processing_s
        self._instant_acks = scenario.links.ack == "instant"
        self._hops = self._unpublished = 0
        self._warnings: dict[tuple[str, str], str] = {}  # by broker and what they are about
        self._payloads = {p.payload_bytes: bytes(p.payload_bytes) for p in self._load.publishers}
        self._underlay = Underlay(setup) if scenario.links_itself else None
        self._known: dict[str, dict[str, LinkEstimate | None]] = {}  # of links, by broker
        self._nodes = {name: _Node(name, self._broker(name, 1)) for name in setup.overlay.brokers}
        self._lay_wires()
        self._plan_moves()

    def run(self, progress: Callable[[float], None] | None = None) -> Result:
        run, events = self._scenario.run, 0
        self._begin()
        end_at = run.start_s + run.seconds + run.drain_s
        steps = 200 if progress else 1
        for step in range(1, steps + 1):
            events += self._agenda.run(end_at * step / steps)
            if progress:
                progress(step / steps)
        self._end(end_at)
        checker = self._checker
        return Result(
            self._recorder.digest,
            checker.publications,
            self._unpublished,
            checker.deliveries,
            self._hops,
            events,
            tuple(self._warnings.values()),
        )

    # ---- the beginning and the end

    def _broker(self, name: str, incarnation: int) -> Broker:
        setup, foresight = self._setup, self._crossing_s
        if self._underlay:
            there = Whereabouts(tuple(self._underlay.contacts(name)))
            return Broker(name, setup.settings, {}, incarnation, foresight, whereabouts=there)
        if name not in self._known:
            self._known[name] = setup.estimates(name)
        if self._moves:  # a broker meets its neighbours as their links come up
            there = Whereabouts()
            return Broker(name, setup.settings, {}, incarnation, foresight, whereabouts=there)
        return Broker(name, setup.settings, self._known[name], incarnation, foresight)

    def _lay_wires(self) -> None:
        if self._underlay:
            return  # brokers will ask for links
        draws, overlay = self._scenario.draws(), self._setup.overlay
        for (a, b), link in self._setup.conditions.items():
            there = b in overlay.delays[a]
            for start, end in ((a, b), (b, a)):
                weather = LinkWeather(start, end, link, draws)
                self._nodes[start].wires[end] = _Wire(self._nodes[end], weather, there)

    def _plan_moves(self) -> None:
        """At one instant links go first, then brokers fail or come, then links appear."""
        for move in self._setup.moves:
            if not move.up:
                self._agenda.add(move.at, FAULT, self._cut, move.a, move.b)
        for broker, instants in self._outages.leaving.items():
            for at in instants:
                before = max(0.0, at - LEAVING_S)
                self._agenda.add(before, FAULT, self._leave, self._nodes[broker])
        for broker, intervals in self._outages.brokers.items():
            for start_at, end_at in intervals:
                if start_at > 0.0 or not self._moves:
                    self._agenda.add(start_at, FAULT, self._fail, self._nodes[broker])
                else:
                    self._nodes[broker].alive = False  # it joins later
                if end_at < inf:
                    self._agenda.add(end_at, FAULT, self._restart, self._nodes[broker])
        for move in self._setup.moves:
            if move.up:
                self._agenda.add(move.at, FAULT, self._join, move.a, move.b)

    def _begin(self) -> None:
        for node in self._nodes.values():
            for neighbour, wire in node.wires.items():
                if wire.up:
                    self._link_up(node, neighbour, None, 0.0)
            if node.alive:
                self._subscribe_clients(node, 0.0)
                self._carry_out(node, [], 0.0)  # it may have something to do by itself
        for index, publisher in enumerate(self._load.publishers):
            self._schedule(publisher, publications(self._scenario, index, publisher), 0.0)

    def _end(self, now: float) -> None:
        for node in self._nodes.values():
            if node.alive:
                self._carry_out(node, node.broker.close(now), now)
        self._recorder.flush()
        self._checker.finish(self._in_flight())

    def _in_flight(self) -> Iterator[Parcel | Envelope]:
        for node in self._nodes.values():
            if node.alive:
                yield from node.broker.holding()
            else:
                yield from node.disk.parcels()
        for wire, _, frame in self._agenda.pending():
            if isinstance(frame, Data) and wire.up:
                yield frame.envelope

    # ---- events

    def _schedule(self, publisher: Speaker, coming: Iterator[Publication], now: float) -> None:
        publication = next(coming, None)
        if publication is not None:
            at = max(publication.at, now)  # one that was slowed is behind with what it has to say
            self._agenda.add(at, PUBLICATION, self._publish, publisher, coming, publication)

    def _publish(
        self, publisher: Speaker, coming: Iterator[Publication], what: Publication, now: float
    ) -> None:
        node = self._nodes[publisher.broker]
        if node.alive and node.broker.crowded:
            node.slowed.append(_Slowed(publisher, coming, what, now))
            return
        said = _Said(publisher, what, now, node.incarnation)
        if self._first_processing_s and node.alive:
            self._agenda.add(now + self._first_processing_s, ARRIVAL, self._process, node, said)
        else:
            self._process(node, said, None, now)
        self._schedule(publisher, coming, now)

    def _process(self, node: _Node, said: _Said, _: object, now: float) -> None:
        """A broker passes on what a publisher said; nobody will, if it has died since."""
        if node.alive and node.incarnation == said.incarnation:
            message = self._message(node, said.publisher, said.what)
            self._checker.expect(message.id, node.broker.owing(message))
            self._carry_out(node, node.broker.publish(message, now, said.at), now)
        else:
            self._unpublished += 1

    def _listen_again(self, node: _Node, now: float) -> None:
        """To all who were slowed: each says what it was about to say, and goes on from there."""
        slowed, node.slowed = node.slowed, []
        for each in slowed:
            who = each.publisher
            self._record(Slowed(now, node.name, who.topic, now - each.since))
            self._agenda.add(now, PUBLICATION, self._publish, who, each.coming, each.what)

    def _message(self, node: _Node, publisher: Speaker, what: Publication) -> Message:
        contract, topic = what.contract, publisher.topic
        if contract == BEST_EFFORT:
            contract = node.broker.default_contract(topic)
        payload = self._payloads[publisher.payload_bytes]
        return Message(node.broker.message_ids.take(), topic, payload, contract, what.properties)

    def _arrive(self, wire: _Wire, sender: str, frame: Frame, now: float) -> None:
        node = wire.receiver
        if node.alive and wire.up:
            self._carry_out(node, node.broker.receive_all(sender, (frame,), now), now)

    def _wake(self, node: _Node, _: object, __: object, now: float) -> None:
        node.alarms.discard(now)
        if node.wake_at != now or not node.alive:
            return  # an earlier wake-up has taken its place
        broker = node.broker
        effects = broker.tick(now) if broker.wake_at() <= now else []
        self._wake_later(node, broker.wake_at())
        self._carry_out(node, effects, now)

    def _wake_later(self, node: _Node, at: float) -> None:
        """Brokers come back to an instant they have asked for before: one event is enough."""
        node.wake_at = at
        if at < inf and at not in node.alarms:
            node.alarms.add(at)
            self._agenda.add(at, WAKE, self._wake, node)

    def _ready(self, node: _Node, neighbour: str, _: object, now: float) -> None:
        wire = node.wires[neighbour]
        if node.alive and wire.up:
            self._carry_out(node, node.broker.link_ready(neighbour, wire.room_bytes, now), now)

    # ---- failures of brokers

    def _fail(self, node: _Node, _: object, __: object, now: float) -> None:
        """A broker dies with all it holds; its neighbours notice one link delay later."""
        self._carry_out(node, node.broker.close(now), now)  # what it sent was carried all the same
        node.alive = False
        self._listen_again(node, now)
        for parcel in node.broker.holding():
            if parcel.durable:
                continue  # it is on the disk
            owed = tuple(destination.broker for destination in parcel.destinations)
            lost = Dropped(now, node.name, parcel.message.id, Reason.BROKER_FAILED, owed)
            self._carry_out(node, [Record(lost)], now)
        for wire in node.wires.values():
            if wire.up:
                at = now + wire.weather.delay_at(now)
                if self._underlay:
                    self._agenda.add(at, FAULT, self._cut, wire.receiver.name, node.name)
                else:
                    self._agenda.add(at, FAULT, self._link_down, wire.receiver, node.name)

    def _restart(self, node: _Node, _: object, __: object, now: float) -> None:
        """It comes back with nothing but its configuration, and its clients return."""
        self._checker.restarted(node.name)
        node.incarnation += 1
        node.broker = self._broker(node.name, node.incarnation)
        node.alive, node.wake_at = True, inf
        for neighbour, wire in node.wires.items():
            if wire.receiver.alive and wire.up:
                at = now + 2 * wire.weather.delay_at(now)  # a handshake
                self._agenda.add(at, FAULT, self._link_up, node, neighbour)
                self._agenda.add(at, FAULT, self._link_up, wire.receiver, node.name)
        self._subscribe_clients(node, now)
        self._carry_out(node, node.broker.restore(node.disk.restore(), now), now)

    def _link_up(self, node: _Node, neighbour: str, _: object, now: float) -> None:
        wire = node.wires[neighbour]
        if node.alive and wire.receiver.alive and wire.up:
            if self._underlay:
                known = self._underlay.estimate(node.name, neighbour)
            else:
                known = self._known[node.name][neighbour]
            self._carry_out(node, node.broker.link_up(neighbour, now, known), now)
            self._ready(node, neighbour, None, now)

    def _link_down(self, node: _Node, neighbour: str, _: object, now: float) -> None:
        if node.alive and node.wires[neighbour].up:
            self._carry_out(node, node.broker.link_down(neighbour, now), now)

    # ---- links and brokers that come and go

    def _cut(self, a: str, b: str, _: object, now: float) -> None:
        """A link is gone, and what is on it is lost; both ends notice at once."""
        for one, other in ((a, b), (b, a)):
            self._link_down(self._nodes[one], other, None, now)
        for one, other in ((a, b), (b, a)):
            node = self._nodes[one]
            gone = node.wires[other]
            gone.up = False  # for all that is still on its way over it
            node.wires[other] = _Wire(gone.receiver, gone.weather, up=False)

    def _open(self, node: _Node, neighbour: str, now: float) -> None:
        """A broker dials another one: a handshake, or nobody answers."""
        assert self._underlay, "only linkers other than `configured` ask for links"
        other = self._nodes.get(neighbour)
        wire = node.wires.get(neighbour)
        if wire is None and other is not None:
            wire = self._lay_wire(node, other)
        if wire is None or not wire.receiver.alive or wire.weather.dark(now):
            self._agenda.add(now + UNANSWERED_S, FAULT, self._refuse, node, neighbour)
        else:
            at = now + 2 * wire.weather.delay_at(now)
            self._agenda.add(at, FAULT, self._opened, node, neighbour)

    def _lay_wire(self, node: _Node, other: _Node) -> _Wire:
        """Between two that were never linked, in both directions."""
        assert self._underlay
        draws = self._scenario.draws()
        conditions = self._underlay.conditions(node.name, other.name)
        for one, receiver in ((node, other), (other, node)):
            weather = LinkWeather(one.name, receiver.name, conditions, draws)
            one.wires[receiver.name] = _Wire(receiver, weather, up=False)
        return node.wires[other.name]

    def _opened(self, node: _Node, neighbour: str, _: object, now: float) -> None:
        """The handshake is done, unless one of the two has died; both may have dialled."""
        wire = node.wires[neighbour]
        if not wire.receiver.alive or not node.alive:
            self._refuse(node, neighbour, None, now)
        elif not wire.up:
            self._join(node.name, neighbour, None, now)

    def _refuse(self, node: _Node, neighbour: str, _: object, now: float) -> None:
        if node.alive:
            self._carry_out(node, node.broker.link_refused(neighbour, now), now)

    def _join(self, a: str, b: str, _: object, now: float) -> None:
        """A link appears."""
        for one, other in ((a, b), (b, a)):
            self._nodes[one].wires[other].up = True
        for one, other in ((a, b), (b, a)):
            self._link_up(self._nodes[one], other, None, now)

    def _leave(self, node: _Node, _: object, __: object, now: float) -> None:
        """A broker is about to leave in good order: its clients go first."""
        for subscription in self._load.subscriptions:
            if subscription.broker == node.name and node.alive:
                self._carry_out(node, node.broker.unsubscribe(subscription.id, now), now)
        if node.alive:
            at = now + LEAVING_S / 2  # what its clients took back has been told by then
            self._agenda.add(at, FAULT, self._say_farewell, node)

    def _say_farewell(self, node: _Node, _: object, __: object, now: float) -> None:
        if node.alive:
            self._carry_out(node, node.broker.leave(now), now)

    def _subscribe_clients(self, node: _Node, now: float) -> None:
        for subscription in self._load.subscriptions:
            if subscription.broker == node.name:
                self._carry_out(node, node.broker.subscribe(subscription, now), now)

    # ---- effects

    def _carry_out(self, node: _Node, effects: list[Effect], now: float) -> None:
        for effect in effects:
            if type(effect) is Send:
                self._send(node, effect, now)
            elif type(effect) is Record:
                self._record(effect.row)
            elif type(effect) is Deliver:
                self._checker.delivered(effect.message, effect.subscriptions)
            elif type(effect) is Store:
                node.disk.keep(effect.parcel)
                self._checker.stored(effect.parcel.message.id)
            elif type(effect) is Forget:
                node.disk.forget(effect.message, effect.destinations)
            elif type(effect) is Open:
                self._open(node, effect.neighbour, now)
            elif type(effect) is Close:
                self._agenda.add(now, FAULT, self._cut, node.name, effect.neighbour)
            elif type(effect) is Warn:
                about = (node.name, effect.text.partition(":")[0])
                if len(self._warnings) < MOST_WARNINGS:
                    self._warnings.setdefault(about, f"{node.name}: {effect.text}")
            else:
                assert_never(effect)
        if node.slowed and not node.broker.crowded:
            self._listen_again(node, now)
        wake_at = node.broker.wake_at()
        if wake_at < node.wake_at:
            # A broker that was just made knows no time yet.
            self._wake_later(node, max(wake_at, now))

    def _send(self, node: _Node, send: Send, now: float) -> None:
        wire, frame = node.wires[send.neighbour], send.frame
        if type(frame) is Data:
            self._hops += 1
            envelope = frame.envelope
            steps = len(envelope.path)
            if steps > 2:  # on a shorter path no link can have been crossed before
                self._checker.sent(node.name, send.neighbour, envelope.path)
            crossing = occasion(envelope.restarts, steps, send.attempt)
            at = wire.weather.arrival(send.size_bytes, envelope.message.id, crossing, now)
            if wire.limited:
                free_at = wire.weather.free_at()
                self._agenda.add(free_at, READY, self._ready, node, send.neighbour)
                if wire.varies:
                    frame = _timed(frame, free_at - now - send.size_bytes * wire.mean_s_per_byte)
            if at is not None:
                at += self._processing_s
        elif self._instant_acks and isinstance(frame, Ack):
            at = now
        else:
            at = wire.weather.control_arrival(now)
            if at is not None and type(frame) is Probe:
                at += self._processing_s  # as messages, or a link would seem slower for being used
        if at is not None:
            self._agenda.add(at, ARRIVAL, self._arrive, wire, node.name, frame)

    def _crossing_s(self, a: str, b: str, at: float) -> float:
        """How long a message from a to b will take that is sent then: for strategies that may know
        what is to come. Inf: it will not arrive."""
        wire = self._nodes[a].wires[b]
        weather = wire.weather
        if weather.dark(at) or not wire.up:
            return inf
        crossing_s = weather.delay_at(at) + self._processing_s
        down = self._outages.brokers[b]
        if down and any(start <= at + crossing_s < end for start, end in down):
            return inf
        return crossing_s

    def _record(self, row: Row) -> None:
        self._recorder.record(row)
        if type(row) is Published:
            self._checker.published(row)
        elif type(row) is Dropped:
            self._checker.dropped(row)
        elif type(row) is Subscribed:
            self._checker.subscribed(row)
