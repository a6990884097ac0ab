"""How does a broker keep up what it knows of its own links, and what does it do by the clock?

Probes ask every neighbour at a steady pace whether its link is alive and how fast. Acknowledgements
tell the latter too. What has changed is advertised from time to time, a great change soon, and a
link that exceeds a message's budget at once. What links have carried is recorded by the minute. All
that is done by the clock, apart from repeating what was not acknowledged, begins here.
"""

from __future__ import annotations

from math import floor, inf, nan

from tidings.broker.control.exchange import Exchange
from tidings.broker.control.incarnation import OwnIncarnation
from tidings.broker.control.linkage import Linkage, Whereabouts
from tidings.broker.control.monitor import Monitor
from tidings.broker.control.silence import QUESTION, Silences
from tidings.broker.effects import Effect, Record
from tidings.broker.frames import Echo, Probe
from tidings.broker.sending.link import LinkEnd
from tidings.broker.sending.transmitter import Transmitter
from tidings.broker.settings import Settings
from tidings.broker.strategies import Strategies
from tidings.broker.waiting import WaitingRoom
from tidings.core.trace import LinkChanged, Probed
from tidings.routing.base import View

COUNT_EVERY_S = 60.0  # what links carried is recorded by the minute
URGENT_PART = 0.1  # of the time between advertisements: a great change waits no longer than that
GREAT_CHANGE_S = 0.010  # of a delay; links that are shorter double and halve for no reason


class Upkeep:
    """The care of one broker for its links, and its chores."""

    def __init__(
        self,
        view: View,
        settings: Settings,
        transmitter: Transmitter,
        strategies: Strategies,
        waiting: WaitingRoom,
        incarnation: OwnIncarnation,
        whereabouts: Whereabouts | None,
    ) -> None:
        self.exchange = Exchange(
            view,
            settings,
            transmitter,
            strategies,
            waiting,
            incarnation,
            self._plan,
            whereabouts,
        )
        seeds = whereabouts.seeds if whereabouts else ()
        self._linkage = Linkage(settings, tuple(transmitter.links), seeds, view)
        self.due_at = inf  # when there are chores
        self._me, self._settings, self._waiting = view.me, settings, waiting
        self._transmitter, self._links = transmitter, transmitter.links
        self._monitor = Monitor(view.me, settings)
        suspect_after_s = settings.suspect_after_s if settings.estimates == "measured" else inf
        self._silences = Silences(view.me, suspect_after_s)
        self._hops = settings.trace == "hops"
        self._gone_at: dict[str, float] = {}  # when links went down by the world's word
        self._times_up = 0  # of all links
        measured = settings.estimates == "measured"
        self._advertise_at = settings.advertise_every_s if measured else inf
        self._advertised_at = 0.0  # by the clock, whether or not there was something to tell
        self._count_at = COUNT_EVERY_S
        if settings.linking != "configured":
            self._plan()  # a broker that looks for links itself waits for nothing

    # ---- what links tell of themselves

    def receive(
        self, link: LinkEnd, frame: Probe | Echo, now: float, effects: list[Effect]
    ) -> None:
        match frame:
            case Probe():
                self._transmitter.send(link, Echo(frame.serial), effects)
            case Echo():
                self._echoed(link, frame, now, effects)

    def _echoed(self, link: LinkEnd, echo: Echo, now: float, effects: list[Effect]) -> None:
        round_trip_s = self._monitor.answered(link.neighbour, echo.serial, now)
        if round_trip_s is None:
            if self._silences.watches(link):  # an answer to a question, or late: the link works
                self._monitor.reached(link.neighbour)
                self._question_answered(link, echo, now)
                self._return(link, now, effects)
            return
        self._plan()
        link.meter.probed(answered=True)
        sample_s = link.meter.unburdened(round_trip_s, 0, now)
        self.measured(link, sample_s, sample_s, now)
        if self._hops:
            effects.append(Record(Probed(now, self._me, link.neighbour, round_trip_s)))
        self._return(link, now, effects)

    def _question_answered(self, link: LinkEnd, echo: Echo, now: float) -> None:
        """What is told by the answer to the only question since a neighbour was last heard."""
        asked_at = self._silences.asked_once_at(link)
        if echo.serial == QUESTION.serial and asked_at is not None:
            sample_s = link.meter.unburdened(now - asked_at, 0, now)
            self.measured(link, sample_s, sample_s, now)

    def heard(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        """Something has come in over a link that counts as down."""
        if self._silences.suspects(link):
            self._silences.heard(link, now)
            if self._monitor.lost(link.neighbour):
                self._transmitter.send(link, QUESTION, effects)  # is it heard there, too?
            else:
                self._return(link, now, effects)

    def _return(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        """A neighbour is heard; if it was not before, it may have missed anything."""
        if not link.up:
            self._turn(link, True, now, effects)
            self.exchange.introduce(link, now, effects)

    def measured(self, link: LinkEnd, longest_s: float, shortest_s: float, now: float) -> None:
        """Learn from the round trips of what was answered together. A link of which nothing was
        known is news to the overlay, and one that differs from what was advertised is urgent:
        messages still choose it for what it was."""
        unknown = not link.known
        link.meter.answered(longest_s, self._transmitter.lag.s, now, shortest_s)
        link.remeasure()
        if unknown:
            self.exchange.share_soon(now)
        elif link.budgets.crossed(*link.typically_s(), now):
            self.exchange.insist(now)
        elif link.differs(GREAT_CHANGE_S):
            urgent_at = self._advertised_at + URGENT_PART * self._settings.advertise_every_s
            self._advertise_at = min(self._advertise_at, max(now, urgent_at))
            self._plan()

    # ---- links that come and go

    def link_up(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        gone_s = now - self._gone_at.pop(link.neighbour, now)
        link.meter.missed(gone_s / self._settings.probe_every_s)
        self._times_up += 1
        self._linkage.came_up(link.neighbour, now)
        link.begin(self._times_up, now)
        self._monitor.start(link.neighbour, now)
        self._silences.start(link, now)
        self._turn(link, True, now, effects)
        self.exchange.introduce(link, now, effects)

    def link_down(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        self._linkage.went_down(link.neighbour, now)
        self._monitor.stop(link.neighbour)
        self._silences.stop(link)
        self._gone_at.setdefault(link.neighbour, now)
        self._turn(link, False, now, effects)

    def part(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        """Forget a neighbour whose link is down and is not awaited."""
        effects += [Record(row) for row in link.carried(self._me, now)]
        del self._links[link.neighbour], self._gone_at[link.neighbour]
        self.exchange.neighbours_changed(now)

    def _turn(self, link: LinkEnd, up: bool, now: float, effects: list[Effect]) -> None:
        """A link goes up or down, by what the world or the monitor says."""
        if link.up != up:
            effects.append(Record(LinkChanged(now, self._me, link.neighbour, up)))
        link.up = up
        if up:
            self._waiting.hasten(now)
        self.exchange.neighbours_changed(now)

    def found(self, member: str, now: float) -> None:
        """A member by which this broker joins has a name."""
        self._linkage.found(member, now)
        self._plan()

    def refused(self, neighbour: str, now: float) -> None:
        """A link that this broker has asked for cannot be made."""
        self._linkage.refused(neighbour, now)
        self._plan()

    # ---- by the clock

    def chores(self, now: float, effects: list[Effect]) -> list[LinkEnd]:
        """All that is due; gives back links that are suspect from now on."""
        suspects = self._watch(now, effects)
        advertise = self._advertise_at <= now
        self.exchange.catch_up(advertise, now, effects)
        if advertise:
            self._advertised_at = now
            self._advertise_at = now + self._settings.advertise_every_s
        if self._count_at <= now:
            self._count_at = (floor(now / COUNT_EVERY_S) + 1) * COUNT_EVERY_S
            effects += self.carried(now)
        self._linkage.look(self.exchange.link_state, now, effects)
        self._plan()
        return suspects

    def carried(self, now: float) -> list[Effect]:
        """What all links have carried since the last time."""
        return [Record(row) for link in self._links.values() for row in link.carried(self._me, now)]

    def _watch(self, now: float, effects: list[Effect]) -> list[LinkEnd]:
        """Probe whom it is time to probe, and notice who is silent."""
        self._probe(now, effects)
        suspects, lag = [], self._transmitter.lag
        lag.woken(self._silences.next_at(), now)
        for link, suspect in self._silences.look(lag.s, now):
            self._transmitter.send(link, QUESTION, effects)
            if suspect and link.up:
                self._turn(link, False, now, effects)
                suspects.append(link)
        if suspects:
            self.exchange.share_at_once(now)
        return suspects

    def _probe(self, now: float, effects: list[Effect]) -> None:
        for neighbour, lost in self._monitor.silent(now):
            link = self._links[neighbour]
            link.meter.probed(answered=False)
            if self._hops:
                effects.append(Record(Probed(now, self._me, neighbour, nan)))
            if lost and link.up:
                self._turn(link, False, now, effects)
        for neighbour, serial in self._monitor.due(now):
            self._transmitter.send(self._links[neighbour], Probe(serial), effects)

    def _plan(self) -> None:
        watch_at = min(self._monitor.next_at(), self._silences.next_at())
        exchange_at = min(self.exchange.next_at(), self._linkage.due_at())
        self.due_at = min(exchange_at, watch_at, self._advertise_at, self._count_at)
