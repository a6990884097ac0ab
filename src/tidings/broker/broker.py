"""The broker: a state machine without I/O that both worlds run.

Named inputs and the time go in, a list of effects comes out, to be carried out in that order.

The straight line of a message
------------------------------
    interests       who wants it?                 local → Deliver(subscriptions, message)
    routing         where next?                   → hops: a neighbour and the destinations it serves
    scheduling      wait for the link             → queue; when the link has room, the best leaves
    contract        is it still worth carrying?   no → Record(Dropped(reason))
    retransmission  wait for the answer           → Send(Data); no ACK in time → ask routing again

Who answers for it
------------------
A broker acknowledges on receipt (a durable message when it is stored) and answers for the message
from then on.

Time
----
There is one timer. A world calls `tick` when `wake_at` says so; earlier or later does no harm but
to punctuality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import assert_never

from tidings.broker.control.incarnation import OwnIncarnation
from tidings.broker.control.linkage import Whereabouts
from tidings.broker.control.upkeep import Upkeep
from tidings.broker.control.wanted import Wanted
from tidings.broker.custody import Custody
from tidings.broker.effects import Deliver, Effect, Forget, Record, Store, Warn
from tidings.broker.frames import (
    CONTROL_BYTES,
    DISCARDED,
    Ack,
    Data,
    Echo,
    Frame,
    Gossip,
    Interests,
    Links,
    Probe,
    Pull,
)
from tidings.broker.records import let_go, published, subscribed
from tidings.broker.sending.link import LinkEnd
from tidings.broker.sending.prospects import LinkProspects
from tidings.broker.sending.transmitter import Transmitter
from tidings.broker.settings import Settings
from tidings.broker.strategies import Strategies
from tidings.core.cache import BoundedCache
from tidings.core.contract import (
    ANYBODY,
    BEST_EFFORT,
    Contract,
    Destination,
    Subscription,
    anybody,
)
from tidings.core.links.estimates import LinkEstimate
from tidings.core.memory import Memory
from tidings.core.message import HEADER_BYTES, Envelope, Message
from tidings.core.message_ids import MessageIds
from tidings.core.parcel import Parcel, received, set_out
from tidings.core.topic import matches
from tidings.core.trace import Delivered, Dropped, Reason
from tidings.routing import CARRY_OPEN
from tidings.routing.base import Route, View, left_to_others
from tidings.routing.options import Foresight

DEFAULTS_BYTES = 4 << 20  # of topics whose default contract is remembered
TOPIC_BYTES = 150  # of one of them, beside its name: measured


class Broker:
    """One broker of the overlay: all protocol state, and no I/O."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        neighbours: Mapping[str, LinkEstimate | None],
        incarnation: int = 1,
        foresight: Foresight | None = None,
        life: str = "",
        whereabouts: Whereabouts | None = None,
    ) -> None:
        """`neighbours` are those this broker always has or awaits links to, with what is known of
        them; `incarnation` should grow with every restart under the same name, or the broker is
        heard only after it has outbid the highest that others know; `foresight` is for strategies
        that only a simulator can run; `life` is drawn at random where an incarnation may come
        again; with `whereabouts`, links to other neighbours may come up."""
        self.name = name
        self.settings = settings
        self.message_ids = MessageIds(name, incarnation, life)
        self._view = View(name)
        self._strategies = Strategies(settings, foresight)
        self._moves, self._lasting = whereabouts is not None, frozenset(neighbours)
        self._links = {near: self._link_end(near, neighbours[near]) for near in sorted(neighbours)}
        self._transmitter = Transmitter(name, settings, self._links, incarnation)
        # Neighbours for whom so much waits that publishers should be slowed; mostly none. What they
        # say is taken all the same, until a queue is full.
        self.crowded: Mapping[str, None] = self._transmitter.crowded
        self._custody = Custody(name, settings, self._links, self._transmitter.crowded, self._moves)
        self._waiting, self._late_takers = self._custody.waiting, self._custody.late_takers
        parts = (self._transmitter, self._strategies, self._waiting)
        own = OwnIncarnation(incarnation, self.message_ids)
        self._upkeep = Upkeep(self._view, settings, *parts, own, whereabouts)
        self._exchange = self._upkeep.exchange
        self._interests = self._exchange.interests
        self._delivered = Memory(settings.remember_s)
        self._began_at = inf  # when the first link came up: nothing came in before
        self._defaults = BoundedCache[str, Contract](DEFAULTS_BYTES)
        self._is_open = settings.is_open

    # ---- inputs from clients

    def publish(self, message: Message, now: float, said_at: float | None = None) -> list[Effect]:
        """A client of this broker says something, or has said it a while ago: its age counts from
        then."""
        born_at = now if said_at is None else said_at
        wanted = self._interests.wanted(message)
        contract = message.contract
        strategy = contract.strategy or self.settings.strategy
        if self._is_open and strategy not in CARRY_OPEN:
            strategy = self.settings.strategy
        effects: list[Effect] = [published(self.name, message, strategy, born_at)]
        if wanted.local_ids:
            self._deliver(message, wanted, born_at, 0, now, effects)
        if self._is_open:
            self._delivered.repeated(message.id, now)  # a copy may come back
            parcel = set_out(message, self.name, (anybody(contract),), strategy, False, born_at)
            self._forward(parcel, now, effects)
            return effects
        if wanted.remote:
            owed = self._interests.owed(wanted, contract)
            durable = contract.durable or wanted.durable
            parcel = set_out(message, self.name, owed, strategy, durable, born_at)
            if durable:
                effects.append(Store(parcel))
            self._forward(parcel, now, effects)
            if self._strategies.talking and self._strategies.have_news():
                self._exchange.share_soon(now)
        if contract.durable or wanted.durable:
            parcel, known = set_out(message, self.name, (), strategy, True, born_at), wanted.remote
            self._late_takers.publish(parcel, (broker for broker, _ in known), now, effects)
        return effects

    def subscribe(self, subscription: Subscription, now: float) -> list[Effect]:
        """A client of this broker wants messages. Its id must be new, or replaces the old wish."""
        self._interests.subscribe(subscription)
        self._exchange.serve(now)
        self._late_takers.heard(now, self._interests.restarts)
        return [subscribed(self.name, subscription, True, now)]

    def unsubscribe(self, subscription_id: str, now: float) -> list[Effect]:
        """A client's wish has ended."""
        ended = self._interests.unsubscribe(subscription_id)
        if ended is None:
            return []
        self._exchange.share_soon(now)
        return [subscribed(self.name, ended, False, now)]

    def owing(self, message: Message) -> tuple[str, ...]:
        """The other brokers that a message would be owed to, if it was published here now; of an
        open message, `ANYBODY`."""
        return (ANYBODY,) if self._is_open else self._interests.wanted(message).brokers

    @property
    def subscriptions(self) -> int:
        """How many subscriptions this broker knows of, in the whole overlay."""
        return len(self._interests)

    def default_contract(self, topic: str) -> Contract:
        """What holds for a message whose publisher states nothing: the first policy that fits."""
        contract = self._defaults.get(topic)
        if contract is None:
            fitting = (p.contract for p in self.settings.policies if matches(p.topic, topic))
            contract = next(fitting, BEST_EFFORT)
            self._defaults.keep(topic, contract, TOPIC_BYTES + len(topic))
        return contract

    def quiet_s(self, neighbour: str, now: float) -> float:
        """How long nothing has come in from a neighbour."""
        return now - self._links[neighbour].heard_at

    # ---- inputs from links

    def receive(self, neighbour: str, frame: Frame, now: float) -> list[Effect]:
        """A frame has come in from a neighbour."""
        return self.receive_all(neighbour, (frame,), now)

    def receive_all(self, neighbour: str, frames: Iterable[Frame], now: float) -> list[Effect]:
        """Frames have come in from a neighbour together. Messages that follow each other are
        acknowledged by one frame, after those are stored that must be; then they go on. Answers
        keep the order of what they answer: what was behind a message must not look as if it was
        not."""
        link = self._links.get(neighbour)
        effects: list[Effect] = []
        if link is None:
            return effects  # the last words over a link that is gone: its sender has kept them
        link.heard_at = now
        if not link.up:
            self._upkeep.heard(link, now, effects)
        answers: list[int] = []
        onward: list[Parcel] = []
        for frame in frames:
            if type(frame) is Data:
                self._data(link, frame, now, answers, onward, effects)
                continue
            if answers:
                self._answer(link, answers, onward, now, effects)
            if type(frame) is Ack:
                answered = self._transmitter.acknowledged(link, frame, now, effects)
                if answered is not None:
                    self._upkeep.measured(link, *answered, now)
            elif type(frame) is Probe or type(frame) is Echo:
                self._upkeep.receive(link, frame, now, effects)
            elif type(frame) is Interests:
                self._exchange.receive(link, frame, now, effects)
                self._late_takers.heard(now, self._interests.restarts)
            elif type(frame) is Links or type(frame) is Pull or type(frame) is Gossip:
                self._exchange.receive(link, frame, now, effects)
            else:
                assert_never(frame)
        if answers:
            self._answer(link, answers, onward, now, effects)
        return effects

    def link_up(
        self, neighbour: str, now: float, known: LinkEstimate | None = None
    ) -> list[Effect]:
        """The link to a neighbour works (again): tell it all that is known. A neighbour that was
        never met has one from now on; `known` is what is known of that link."""
        effects: list[Effect] = []
        self._began_at = min(self._began_at, now)
        link = self._links.get(neighbour) or self._meet(neighbour, known)
        self._upkeep.link_up(link, now, effects)
        self._late_takers.linked(neighbour, now)
        return effects

    def link_down(self, neighbour: str, now: float) -> list[Effect]:
        """The link to a neighbour is gone, and with it all answers that were expected. Of a
        neighbour whose link is not awaited, nothing is kept."""
        link = self._links.get(neighbour)
        effects: list[Effect] = []
        if link is None:
            return effects
        self._upkeep.link_down(link, now, effects)
        for parcel in self._transmitter.abandon(link, now):
            self._give_up(parcel, neighbour, Reason.LINK_DOWN, now, effects)
        if neighbour not in self._lasting:
            self._upkeep.part(link, now, effects)
        return effects

    def link_refused(self, neighbour: str, now: float) -> list[Effect]:
        """A link that was to be opened cannot be: it is tried again after a while."""
        self._upkeep.refused(neighbour, now)
        return []

    def member_found(self, name: str, now: float) -> list[Effect]:
        """The world has reached a member of which it knew the address only. If this broker is
        alone, a link to it is to come up, as if it had been asked for."""
        self._upkeep.found(name, now)
        return []

    def reached_at(self, address: str) -> None:
        """Others reach this broker there, as is known when it listens."""
        self._exchange.link_state.moved_to(address)

    def link_ready(self, neighbour: str, room_bytes: float, now: float) -> list[Effect]:
        """The link can take this many bytes from now on; the last parcel may overshoot."""
        link = self._links.get(neighbour)
        effects: list[Effect] = []
        if link is not None:
            link.room_bytes = room_bytes
            self._transmitter.pump(link, now, effects)
        return effects

    def _meet(self, neighbour: str, known: LinkEstimate | None) -> LinkEnd:
        """The end of a link to somebody who had none."""
        assert self._moves, f"{self.name} has no link to {neighbour}"
        link = self._links[neighbour] = self._link_end(neighbour, known)
        in_order = sorted(self._links.items())
        self._links.clear()  # others hold this dict
        self._links.update(in_order)
        return link

    def _link_end(self, neighbour: str, known: LinkEstimate | None) -> LinkEnd:
        prospects = LinkProspects(neighbour, self._view, self._strategies)
        return LinkEnd(neighbour, self.settings, known, prospects)

    # ---- time

    def wake_at(self) -> float:
        """When `tick` may have something to do: never too late, at times too early."""
        at, due_at = self._transmitter.wake_at, self._upkeep.due_at  # asked after every input
        if due_at < at:
            at = due_at
        due_at = self._waiting.due_at
        if due_at < at:
            at = due_at
        due_at = self._late_takers.due_at
        return due_at if due_at < at else at

    def tick(self, now: float) -> list[Effect]:
        """Time has passed."""
        effects: list[Effect] = []
        if self._transmitter.is_overdue(now):
            for link, parcel in self._transmitter.overdue(now, effects):
                self._give_up(parcel, link.neighbour, Reason.UNACKNOWLEDGED, now, effects)
        if self._upkeep.due_at <= now:
            for suspect in self._upkeep.chores(now, effects):
                for parcel in self._transmitter.recall(suspect, now):
                    self._give_up(parcel, suspect.neighbour, Reason.LINK_DOWN, now, effects)
                self._waiting.call_all(now)
        if self._waiting.due_at <= now:
            for parcel in self._custody.tried_again(now, effects):
                self._forward(parcel, now, effects)
        if self._late_takers.due_at <= now:
            for parcel in self._custody.given_out(self._interests, now, effects):
                self._forward(parcel, now, effects)
        self._custody.mind_memory()
        return effects

    def leave(self, now: float) -> list[Effect]:
        """This broker is going to end: the others shall look for no links to it."""
        effects: list[Effect] = []
        self._exchange.farewell(now, effects)
        return effects

    def close(self, now: float) -> list[Effect]:
        """The last rows of a broker that ends in good order."""
        return self._upkeep.carried(now)

    def is_sending(self) -> bool:
        """Does anything wait for a link, or for the answer of a neighbour?"""
        return next(self._transmitter.holding(), None) is not None

    def holding(self) -> Iterator[Parcel]:
        """All parcels this broker answers for: in queues, sent and not acknowledged, waiting."""
        yield from self._transmitter.holding()
        yield from self._custody

    def restore(self, stored: Iterable[Parcel], now: float) -> list[Effect]:
        """What an earlier incarnation of this broker had stored and not handed on."""
        effects: list[Effect] = []
        self._custody.restore(stored, now, effects)
        return effects

    # ---- the straight line

    def _data(
        self,
        link: LinkEnd,
        frame: Data,
        now: float,
        answers: list[int],
        onward: list[Parcel],
        effects: list[Effect],
    ) -> None:
        """Deliver what is for here; what is not goes `onward`."""
        if frame.envelope.durable and self._custody.is_full():
            return  # without an answer, the neighbour keeps it
        answers.append(frame.transmission)
        if link.seen.repeated(frame.transmission, now):
            link.count(DISCARDED, CONTROL_BYTES)
            return
        envelope = frame.envelope
        message, owed = envelope.message, envelope.destinations
        # `message.frame_bytes`, mostly without the call: every hop passes through here.
        size_bytes = HEADER_BYTES + len(message.topic) + len(message.payload)
        if message.properties or message.headers:
            size_bytes = message.frame_bytes
        born_at = now - envelope.age_s - link.delay_s - size_bytes * link.s_per_byte
        for destination in owed:
            if destination.broker == self.name:
                self._arrived(envelope, destination, born_at, size_bytes, now, effects)
                owed = tuple([other for other in owed if other is not destination])
                break
            if destination.broker == ANYBODY:  # here, and wherever else it comes
                self._arrived(envelope, destination, born_at, size_bytes, now, effects)
        if owed:
            parcel = received(envelope, self.name, owed, born_at, size_bytes)
            if envelope.durable:
                effects.append(Store(parcel))
            onward.append(parcel)

    def _answer(
        self,
        link: LinkEnd,
        answers: list[int],
        onward: list[Parcel],
        now: float,
        effects: list[Effect],
    ) -> None:
        """From here on, this broker answers for what came in."""
        self._transmitter.acknowledge(link, tuple(answers), effects)
        answers.clear()
        for parcel in onward:
            self._forward(parcel, now, effects)
        onward.clear()

    def _arrived(
        self,
        envelope: Envelope,
        destination: Destination,
        born_at: float,
        size_bytes: int,
        now: float,
        effects: list[Effect],
    ) -> None:
        """A message is for clients of this broker, too."""
        message = envelope.message
        if envelope.doubtful and born_at < self._began_at and not envelope.durable:
            # An earlier incarnation may have delivered it, and nobody remembers.
            lost = Dropped(now, self.name, message.id, Reason.BROKER_FAILED, (self.name,))
            effects.append(Record(lost))
        elif not self._delivered.repeated(message.id, now):
            wanted = self._interests.wanted(message)
            self._deliver(message, wanted, born_at, len(envelope.path), now, effects)
            if envelope.durable:
                mine = received(envelope, self.name, (destination,), born_at, size_bytes)
                self._late_takers.receive(mine, wanted.local_ids, now, effects)
            elif not wanted.local_ids and destination.broker != ANYBODY:
                me = (self.name,)
                effects.append(Record(Dropped(now, self.name, message.id, Reason.UNWANTED, me)))

    def _deliver(
        self,
        message: Message,
        wanted: Wanted,
        born_at: float,
        hops: int,
        now: float,
        effects: list[Effect],
    ) -> None:
        takers, age_s, me = wanted.local_ids, now - born_at, (self.name,)
        if message.contract.late == "drop" or not wanted.takes_late:
            takers = wanted.in_time(message.contract, age_s)
            if len(takers) < len(wanted.local_ids):
                effects.append(Record(Dropped(now, self.name, message.id, Reason.EXPIRED, me)))
        if takers:
            effects.append(Deliver(takers, message, age_s))
            effects.append(Record(Delivered(now, self.name, message.id, age_s, hops, takers)))

    def _forward(self, parcel: Parcel, now: float, effects: list[Effect]) -> None:
        router = self._strategies.get(parcel.strategy)
        if router is None:
            owed, reason = parcel.destinations, Reason.UNKNOWN_STRATEGY
            let_go(self.name, parcel, reason, owed, now, effects)
            return
        route = router.route(parcel, self._view, now)
        self._follow(route, parcel, Reason.NO_ROUTE, now, effects)

    def _follow(
        self, route: Route, parcel: Parcel, reason: str, now: float, effects: list[Effect]
    ) -> None:
        if route.warning:
            effects.append(Warn(route.warning))
        for hop in route.hops:
            link = self._links[hop.neighbour]  # strategies know no other neighbours
            whole = hop.destinations is parcel.destinations and not hop.plan
            copy = parcel if whole else parcel.only_for(hop.destinations, hop.plan, hop.budgets)
            if link.outbox.full():
                self._custody.keep(copy, copy.destinations, Reason.QUEUE_FULL, now, effects)
                continue
            self._transmitter.enqueue(link, copy, now, effects)
        if route.stranded:
            self._strand(route, parcel, route.reason or reason, now, effects)
        elif parcel.durable and not route.hops:  # other copies serve them
            effects.append(Forget(parcel.message.id, tuple(d.broker for d in parcel.destinations)))

    def _give_up(
        self, parcel: Parcel, neighbour: str, reason: str, now: float, effects: list[Effect]
    ) -> None:
        """A neighbour cannot be reached: does the strategy know another path?"""
        parcel = parcel.given_up_on(self.name, neighbour)
        router = self._strategies.get(parcel.strategy)
        assert router is not None, "it has routed this parcel before"
        route = router.reroute(parcel, neighbour, self._view, now)
        self._follow(route, parcel, reason, now, effects)

    # ---- no path for now

    def _strand(
        self, route: Route, parcel: Parcel, reason: str, now: float, effects: list[Effect]
    ) -> None:
        """Destinations to which no way is known wait, unless other copies are for them."""
        owed = route.stranded
        several = parcel.strategy in self._strategies.redundant and not parcel.durable
        if several and self.settings.exhausted == "retry":
            left = left_to_others(route, parcel)
            if left:
                let_go(self.name, parcel, reason, left, now, effects)
            owed = tuple([destination for destination in owed if destination not in left])
        if owed:
            self._custody.keep(parcel, owed, reason, now, effects)
