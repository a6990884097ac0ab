"""What brokers tell each other apart from messages: who subscribes where, and how the links are.

Changes of interests and links wait a moment for company and are then flooded; so does what routers
have to say, but only to neighbours. Probes ask every neighbour at a steady pace whether its link is
alive and how fast; a link that exceeds a message's budget is told at once. All that is done by the
clock, apart from repeating what was not acknowledged, is done here.
"""

from __future__ import annotations

from math import floor, inf, nan

from tidings.broker.control.interest_parts import Assembly, joined, split
from tidings.broker.control.interests import Interests as InterestTable
from tidings.broker.control.interests import News
from tidings.broker.control.link_state import LinkState, aged, nonsense
from tidings.broker.control.monitor import Monitor
from tidings.broker.effects import Effect, Record, Warn
from tidings.broker.frames import (
    CONTROL_BYTES,
    Ack,
    Echo,
    Gossip,
    Interests,
    Links,
    Probe,
    Pull,
)
from tidings.broker.frames import Control as ControlFrame
from tidings.broker.sending.link import ACK, DISCARDED, PROBE, Link
from tidings.broker.sending.transmitter import Transmitter
from tidings.broker.settings import Settings
from tidings.broker.strategies import Strategies
from tidings.broker.waiting import WaitingRoom
from tidings.core.trace import LinkChanged, Probed
from tidings.routing.base import View

COUNT_EVERY_S = 60.0  # what links carried is recorded by the minute
URGENT_PART = 0.1  # of the time between advertisements: a great change waits no longer than that
INSIST_EVERY_S = 0.1  # a link that exceeds one budget after the other floods no faster than that
GREAT_CHANGE_S = 0.010  # of a delay; links that are shorter double and halve for no reason


class Control:
    """The knowledge of one broker about the others, and how it is kept up."""

    def __init__(
        self,
        view: View,
        settings: Settings,
        transmitter: Transmitter,
        strategies: Strategies,
        waiting: WaitingRoom,
        incarnation: int,
    ) -> None:
        me = view.me
        self.interests = InterestTable(me, incarnation)
        self.due_at = inf  # when `chores` has something to do
        self._me, self._settings = me, settings
        self._transmitter, self._links = transmitter, transmitter.links
        self._strategies, self._waiting = strategies, waiting
        measured = settings.estimates == "measured"
        lifetime_s = settings.report_lifetime_s if measured else inf
        self._link_state = LinkState(view, incarnation, settings.advertise_change, lifetime_s)
        self._link_state.neighbours_changed((), tuple(self._links))
        self.view = view
        self._monitor = Monitor(me, settings)
        self._assembly = Assembly()
        self._share_at = inf
        self._insist = False  # on the next advertisement, however small the change
        self._insisted_at = -inf
        self._gone_at: dict[str, float] = {}  # when links went down by the world's word
        self._advertise_at = settings.advertise_every_s if measured else inf
        self._advertised_at = 0.0  # by the clock, whether or not there was something to tell
        self._count_at = COUNT_EVERY_S
        self._hops = settings.trace == "hops"

    # ---- what comes in

    def receive(
        self,
        link: Link,
        frame: Probe | Echo | ControlFrame,
        now: float,
        effects: list[Effect],
    ) -> None:
        match frame:
            case Probe():
                self._transmitter.send(link, Echo(frame.serial), PROBE, effects)
            case Echo():
                self._echoed(link, frame, now, effects)
            case Interests() | Links() | Pull() | Gossip():
                self._transmitter.send(link, Ack(frame.transmission), ACK, effects)
                if link.seen.repeated(frame.transmission, now):
                    link.count(DISCARDED, CONTROL_BYTES)
                else:
                    self._learn(link, frame, now, effects)

    def _learn(self, link: Link, frame: ControlFrame, now: float, effects: list[Effect]) -> None:
        match frame:
            case Links():
                if warning := nonsense(frame, self._me, self._links):
                    effects.append(Warn(warning))
                before = self.view.links.get(frame.origin, {})
                if self._link_state.apply(frame := aged(frame, link.delay_s), now):
                    self._plan()
                    if self.view.links[frame.origin].keys() - before.keys():
                        self._waiting.hasten(now)  # there may be a way now
                    if frame.origin in self._links:
                        self._links[frame.origin].heard(dict(frame.links).get(self._me))
                    self._spread(frame, link.neighbour, now, effects)
                    if self._strategies.talking:
                        self.share_soon(now)  # what they say may follow from it
            case Gossip():
                self._overhear(link, frame, now)
            case Interests():
                if parts := self._assembly.gather(frame):
                    self._hear(link, parts, now, effects)
            case Pull():
                self._tell_whole(link, frame.origin, now, effects)

    def _overhear(self, link: Link, gossip: Gossip, now: float) -> None:
        """A neighbour's router speaks to ours; of a strategy unknown here there is none."""
        self._strategies.get(gossip.strategy)
        router = self._strategies.talking.get(gossip.strategy)
        if router is not None:
            router.hear(link.neighbour, gossip.news, gossip.transmission, self.view)
            self.share_soon(now)

    def _hear(self, link: Link, parts: list[Interests], now: float, effects: list[Effect]) -> None:
        """A change of another broker's subscriptions has come in."""
        news = self.interests.apply(joined(parts))
        if news is News.NEW:
            for part in parts:
                self._spread(part, link.neighbour, now, effects)
        elif news is News.GAP:
            self._transmitter.tell(link, Pull(0, parts[0].origin), now, effects)

    def _tell_whole(self, link: Link, origin: str, now: float, effects: list[Effect]) -> None:
        if whole := self.interests.whole(origin):
            for part in split(whole):
                self._transmitter.tell(link, part, now, effects)

    def _echoed(self, link: Link, echo: Echo, now: float, effects: list[Effect]) -> None:
        round_trip_s = self._monitor.answered(link.neighbour, echo.serial, now)
        if round_trip_s is None:
            return
        self._plan()
        link.meter.probed(answered=True)
        self.measured(link, link.meter.unburdened(round_trip_s, 0, now), now)
        if self._hops:
            effects.append(Record(Probed(now, self._me, link.neighbour, round_trip_s)))
        if not link.up:
            self._turn(link, True, now, effects)
            self._introduce(link, now, effects)

    def measured(self, link: Link, round_trip_s: float, now: float) -> None:
        """Learn from an answer; a link of which nothing was known is news to the overlay, and one
        that is another than was told is urgent: messages still choose it for what it was."""
        unknown = not link.known
        link.meter.answered(round_trip_s)
        link.remeasure()
        if unknown:
            self.share_soon(now)
        elif link.budgets.crossed(*link.typically_s(), now):
            self._insist = True  # a source must hear of it at once
            self._share_at = min(self._share_at, max(now, self._insisted_at + INSIST_EVERY_S))
            self._plan()
        elif link.differs(GREAT_CHANGE_S):
            urgent_at = self._advertised_at + URGENT_PART * self._settings.advertise_every_s
            self._advertise_at = min(self._advertise_at, max(now, urgent_at))
            self._plan()

    # ---- links that come and go

    def link_up(self, link: Link, now: float, effects: list[Effect]) -> None:
        gone_s = now - self._gone_at.pop(link.neighbour, now)
        link.meter.missed(gone_s / self._settings.probe_every_s)
        self._monitor.start(link.neighbour, now)
        self._turn(link, True, now, effects)
        self._introduce(link, now, effects)

    def link_down(self, link: Link, now: float, effects: list[Effect]) -> None:
        self._monitor.stop(link.neighbour)
        self._gone_at.setdefault(link.neighbour, now)
        self._turn(link, False, now, effects)

    def _turn(self, link: Link, up: bool, now: float, effects: list[Effect]) -> None:
        """A link goes up or down, by what the world or the monitor says."""
        if link.up != up:
            effects.append(Record(LinkChanged(now, self._me, link.neighbour, up)))
        link.up = up
        if up:
            self._waiting.hasten(now)
        self._link_state.neighbours_changed(
            tuple(neighbour for neighbour, link in self._links.items() if link.up),
            tuple(neighbour for neighbour, link in self._links.items() if not link.up),
        )
        self.share_soon(now)

    def _introduce(self, link: Link, now: float, effects: list[Effect]) -> None:
        """Tell a neighbour all that is known: it may have missed any of it."""
        for links in self._link_state.all(now):
            self._transmitter.tell(link, links, now, effects)
        for origin in self.interests.origins():
            self._tell_whole(link, origin, now, effects)
        for name, router in self._strategies.talking.items():
            if news := router.introduction(self.view):
                self._transmitter.tell(link, Gossip(0, name, news), now, effects)

    # ---- what goes out

    def share_soon(self, now: float) -> None:
        """Something has changed that the others should hear of."""
        self._share_at = min(self._share_at, now + self._settings.batch_s)
        self._plan()

    def _share(self, now: float, effects: list[Effect]) -> None:
        """Tell the overlay what changed here, all at once."""
        self._share_at = inf
        estimates = {n: e for n, link in self._links.items() if link.up and (e := link.estimate)}
        links = self._link_state.advertise(estimates, now, self._insist)
        if self._insist:
            self._insist, self._insisted_at = False, now
        if links is not None:
            self._spread(links, "", now, effects)
            for neighbour, estimate in links.links:
                self._links[neighbour].told(estimate)
        if changes := self.interests.changes():
            for part in split(changes):
                self._spread(part, "", now, effects)
        for name, router in self._strategies.talking.items():
            if news := router.news(self.view):
                self._spread(Gossip(0, name, news), "", now, effects)

    def serve(self, now: float) -> None:
        """Somebody subscribes here."""
        self._link_state.serve()
        self.share_soon(now)

    def _spread(
        self, frame: Interests | Links | Gossip, heard_from: str, now: float, effects: list[Effect]
    ) -> None:
        for neighbour, link in self._links.items():
            if link.up and neighbour != heard_from:
                self._transmitter.tell(link, frame, now, effects)

    # ---- by the clock

    def chores(self, now: float, effects: list[Effect]) -> None:
        self._watch(now, effects)
        self._link_state.expire(now)
        if min(self._share_at, self._advertise_at, self._link_state.renew_at()) <= now:
            self._share(now, effects)
        if self._advertise_at <= now:
            self._advertised_at = now
            self._advertise_at = now + self._settings.advertise_every_s
        if self._count_at <= now:
            self._count_at = (floor(now / COUNT_EVERY_S) + 1) * COUNT_EVERY_S
            effects += self.carried(now)
        self._plan()

    def carried(self, now: float) -> list[Effect]:
        """What all links have carried since the last time."""
        return [Record(row) for link in self._links.values() for row in link.carried(self._me, now)]

    def _watch(self, now: float, effects: list[Effect]) -> None:
        """Probe whom it is time to probe, and notice who is silent."""
        for neighbour, lost in self._monitor.silent(now):
            link = self._links[neighbour]
            link.meter.probed(answered=False)
            if self._hops:
                effects.append(Record(Probed(now, self._me, neighbour, nan)))
            if lost:
                self._turn(link, False, now, effects)
        for neighbour, serial in self._monitor.due(now):
            self._transmitter.send(self._links[neighbour], Probe(serial), PROBE, effects)

    def _plan(self) -> None:
        monitor_at = self._monitor.next_at()
        reports_at = min(self._link_state.renew_at(), self._link_state.expires_at)
        self.due_at = min(
            self._share_at, self._count_at, self._advertise_at, monitor_at, reports_at
        )
