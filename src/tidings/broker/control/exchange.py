"""What do brokers tell each other apart from messages? Interests, link reports, and gossip.

Who subscribes where and how the links are is flooded: each broker passes on what is news to it.
What routers have to say (gossip) goes to neighbours only. Changes wait a moment for company and are
then told all at once; a neighbour whose link comes up is told all that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from tidings.broker.control.horizon import Horizon
from tidings.broker.control.incarnation import OwnIncarnation
from tidings.broker.control.interest_parts import joined, split
from tidings.broker.control.interests import InterestTable, News
from tidings.broker.control.link_state import LinkState, aged, nonsense
from tidings.broker.control.linkage import Whereabouts
from tidings.broker.control.unheard import Unheard
from tidings.broker.effects import Effect, Warn
from tidings.broker.frames import (
    CONTROL_BYTES,
    DISCARDED,
    ControlFrame,
    Gossip,
    Interests,
    Links,
    Pull,
)
from tidings.broker.sending.link import LinkEnd
from tidings.broker.sending.transmitter import Transmitter
from tidings.broker.settings import Settings
from tidings.broker.strategies import Strategies
from tidings.broker.waiting import WaitingRoom
from tidings.routing.base import View

TRANSMISSION_BITS = 63
INSIST_EVERY_S = 0.1  # a link that exceeds one budget after the other floods no faster than that


class Exchange:
    """What one broker knows of the others, and what it tells them."""

    def __init__(
        self,
        view: View,
        settings: Settings,
        transmitter: Transmitter,
        strategies: Strategies,
        waiting: WaitingRoom,
        incarnation: OwnIncarnation,
        plan: Callable[[], None],
        whereabouts: Whereabouts | None,
    ) -> None:
        """`plan()` is called whenever `next_at` has another answer."""
        # Where strangers may become neighbours, it is no nonsense if they say they have links here.
        self._moves = whereabouts is not None
        address = whereabouts.address if whereabouts else ""
        self.interests = InterestTable(view.me, incarnation.number, settings.counts_takers)
        self._view, self._batch_s, self._plan = view, settings.batch_s, plan
        self._transmitter, self._links = transmitter, transmitter.links
        self._strategies, self._waiting = strategies, waiting
        # A network that moves must forget; one that does not, and is not measured, has no news.
        ages = self._moves or settings.estimates == "measured"
        lifetime_s = settings.report_lifetime_s if ages else inf
        change, self._own = settings.advertise_change, incarnation
        self.link_state = LinkState(view, incarnation.number, change, lifetime_s, address)
        self.link_state.neighbours_changed((), tuple(self._links))
        unheard_s = settings.unheard_s
        self._unheard = Unheard(self.interests, self.link_state, lifetime_s, unheard_s)
        hops = settings.interests
        self._horizon = Horizon(view, hops if isinstance(hops, int) else -1)
        self._share_at = inf
        self._insist = False  # on the next report of our links, however small the change
        self._insisted_at = -inf

    # ---- what comes in

    def receive(
        self, link: LinkEnd, frame: ControlFrame, now: float, effects: list[Effect]
    ) -> None:
        self._transmitter.acknowledge(link, (frame.transmission,), effects)
        if link.seen.repeated(frame.transmission, now):
            link.count(DISCARDED, CONTROL_BYTES)
            return
        match frame:
            case Links():
                self._hear_links(link, frame, now, effects)
            case Gossip():
                self._hear_gossip(link, frame, now)
            case Interests():
                if parts := link.unfinished.gather(frame):
                    self._hear_interests(link, parts, now, effects)
            case Pull():
                self._tell_interests(link, frame.origin, now, effects)

    def _hear_links(self, link: LinkEnd, frame: Links, now: float, effects: list[Effect]) -> None:
        me, origin = self._view.me, frame.origin
        if self.link_state.is_former(frame):
            self._outbid(frame, now, effects)
            return
        before, report = self._view.links.get(origin, {}), aged(frame, link.delay_s)
        if not self.link_state.apply(report, now):
            later = self.link_state.later_life(frame, now)
            if later and origin == link.neighbour:  # so that it goes above what is remembered here
                self._transmitter.tell(link, later, now, effects)
            return
        known = None if self._moves else self._links
        if warning := nonsense(frame, me, known):  # the same is heard from many neighbours
            effects.append(Warn(warning))
        self._plan()
        if self._view.links[origin].keys() - before.keys():
            self._waiting.hasten(now)  # there may be a path now
        if origin in self._links:
            self._links[origin].heard(dict(report.links).get(me))
        self._spread(report, link.neighbour, now, effects)
        if self._strategies.talking:
            self.share_soon(now)  # what routers say may follow from it

    def _hear_gossip(self, link: LinkEnd, gossip: Gossip, now: float) -> None:
        """A neighbour's router speaks to ours; of a strategy unknown here there is none."""
        self._strategies.get(gossip.strategy)
        router = self._strategies.talking.get(gossip.strategy)
        if router is not None:
            serial = link.times_up << TRANSMISSION_BITS | gossip.transmission
            router.hear(link.neighbour, gossip.news, serial, self._view)
            self.share_soon(now)

    def _hear_interests(
        self, link: LinkEnd, parts: list[Interests], now: float, effects: list[Effect]
    ) -> None:
        """A change of another broker's subscriptions has come in."""
        update = joined(parts)
        if self.interests.is_former(update):
            self._outbid(update, now, effects)
            return
        if not self._horizon.keeps(update.origin):
            return  # its sender, or this broker, has not heard yet of links that are gone
        news = self.interests.apply(update)
        if news is News.NEW:
            self._unheard.heard(update.origin, now)
            self._plan()
            if self._horizon.passes_on(update.origin):
                for part in parts:
                    self._spread(part, link.neighbour, now, effects)
        elif news is News.GAP:
            self._transmitter.tell(link, Pull(0, parts[0].origin), now, effects)

    def _outbid(self, heard: Interests | Links, now: float, effects: list[Effect]) -> None:
        """Others know us by a number that we have not: go above it, soon, and tell all anew."""
        effects.append(Warn(self._own.outdone(heard.incarnation, now)))
        self._plan()

    # ---- what goes out

    def share_soon(self, now: float) -> None:
        """Something has changed that the others should hear of."""
        self._share_at = min(self._share_at, now + self._batch_s)
        self._plan()

    def share_at_once(self, now: float) -> None:
        """Something has changed that parcels in our own hands cannot wait for."""
        self._share_at = min(self._share_at, now)

    def insist(self, now: float) -> None:
        """A source must hear at once how our links are: one exceeds what a message allows it."""
        self._insist = True
        self._share_at = min(self._share_at, max(now, self._insisted_at + INSIST_EVERY_S))
        self._plan()

    def serve(self, now: float) -> None:
        """Somebody subscribes here."""
        self.link_state.serve()
        self.share_soon(now)

    def neighbours_changed(self, now: float) -> None:
        """A link went up or down."""
        self.link_state.neighbours_changed(
            tuple(neighbour for neighbour, link in self._links.items() if link.up),
            tuple(neighbour for neighbour, link in self._links.items() if not link.up),
        )
        self.share_soon(now)

    def introduce(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        """Tell a neighbour all that is known: it may have missed any of it."""
        for links in self.link_state.all(now):
            self._transmitter.tell(link, links, now, effects)
        for origin in self.interests.origins():
            if self._horizon.passes_on(origin):
                self._tell_interests(link, origin, now, effects)
        for name, router in self._strategies.talking.items():
            if news := router.introduction(self._view):
                self._transmitter.tell(link, Gossip(0, name, news), now, effects)

    def farewell(self, now: float, effects: list[Effect]) -> None:
        """This broker leaves: nobody shall look for it any more. What its clients have just taken
        back does not wait for company."""
        self._share_interests(now, effects)
        if links := self.link_state.advertise({}, now, insist=True):
            self._spread(links, "", now, effects)

    def next_at(self) -> float:
        """When something is to be told, or to be forgotten."""
        link_state = self.link_state
        share_at = min(self._share_at, self._own.rises_at)
        forget_at = min(link_state.expires_at, self._unheard.due_at)
        look_at = 0.0 if self._horizon.is_outdated() else inf
        return min(share_at, link_state.renew_at(), forget_at, look_at)

    def catch_up(self, advertise: bool, now: float, effects: list[Effect]) -> None:
        """Forget what is too old, and tell what is due; `advertise`: it is time for our links."""
        for origin in self.link_state.expire(now):
            self._unheard.gone(origin, now)
        self._unheard.forget(now)
        if self._horizon.is_outdated():
            self._keep_to_horizon(now, effects)
        if self._own.rises_at <= now:
            incarnation, self._share_at = self._own.rise(now), now
            self.interests.begin_anew(incarnation)
            self.link_state.begin_anew(incarnation)
        if advertise or min(self._share_at, self.link_state.renew_at()) <= now:
            self._share(now, effects)

    def _share(self, now: float, effects: list[Effect]) -> None:
        """Tell the overlay what changed here, all at once."""
        self._share_at = inf
        told = ((n, link.told(self._insist)) for n, link in self._links.items() if link.up)
        estimates = {neighbour: estimate for neighbour, estimate in told if estimate}
        links = self.link_state.advertise(estimates, now, self._insist)
        if self._insist:
            self._insist, self._insisted_at = False, now
        if links is not None:
            self._spread(links, "", now, effects)
            for neighbour, estimate in links.links:
                self._links[neighbour].advertised(estimate)
        self._share_interests(now, effects)
        for name, router in self._strategies.talking.items():
            if news := router.news(self._view):
                self._spread(Gossip(0, name, news), "", now, effects)

    def _share_interests(self, now: float, effects: list[Effect]) -> None:
        changes = self.interests.changes()
        if changes and self._horizon.passes_on(changes.origin):
            for part in split(changes):
                self._spread(part, "", now, effects)

    def _keep_to_horizon(self, now: float, effects: list[Effect]) -> None:
        """Links have come or gone, and with them the distances of others."""
        moved = self._horizon.look(self.interests.origins())
        for origin in moved.beyond:
            self.interests.forget(origin)
        for origin in moved.nearer:
            for link in self._links.values():
                if link.up:
                    self._tell_interests(link, origin, now, effects)
        for origin, neighbour in moved.unknown:
            self._transmitter.tell(self._links[neighbour], Pull(0, origin), now, effects)

    def _tell_interests(
        self, link: LinkEnd, origin: str, now: float, effects: list[Effect]
    ) -> None:
        if whole := self.interests.whole(origin):
            for part in split(whole):
                self._transmitter.tell(link, part, now, effects)

    def _spread(
        self, frame: Interests | Links | Gossip, heard_from: str, now: float, effects: list[Effect]
    ) -> None:
        for neighbour, link in self._links.items():
            if link.up and neighbour != heard_from:
                self._transmitter.tell(link, frame, now, effects)
