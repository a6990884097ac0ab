"""What does a broker keep that cannot go on just now, and how much of it?

Parcels to which no way is known wait and are tried again (`waiting`). Durable messages are held for
those who could not say yet that they want them (`late_takers`). Of what is not durable, no more
waits than there is room for. What is durable is always kept; so when there is much of it,
publishers are slowed, and when there is too much, neighbours have to keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidings.broker.control.interests import InterestTable
from tidings.broker.effects import Deliver, Effect, Record, Store, Warn
from tidings.broker.late_takers import LateTakers
from tidings.broker.records import let_go
from tidings.broker.sending.outbox import CROWDED_FROM, ROOMY_BELOW
from tidings.broker.settings import Settings
from tidings.broker.waiting import WaitingRoom, is_fresh, may_wait
from tidings.core.contract import Destination
from tidings.core.parcel import Parcel
from tidings.core.trace import Delivered, Reason

MOST_NAMED = 3  # destinations in a warning
KEPT = ""  # among those who are crowded: no neighbour, but what is kept here


class Custody:
    """All that one broker keeps until it can go on."""

    def __init__(
        self,
        me: str,
        settings: Settings,
        neighbours: Iterable[str],
        crowded: dict[str, None],
        moves: bool,
    ) -> None:
        """`crowded` are those for whom publishers are slowed."""
        self.waiting = WaitingRoom(settings)
        for_s, batch_s = settings.late_takers_s, settings.batch_s
        self.late_takers = LateTakers(me, for_s, batch_s, neighbours, moves)
        self._me, self._settings, self._crowded = me, settings, crowded

    def __iter__(self) -> Iterator[Parcel]:
        yield from self.waiting
        yield from (held.parcel for held in self.late_takers)

    def restore(self, stored: Iterable[Parcel], now: float, effects: list[Effect]) -> None:
        """What an earlier incarnation of this broker had stored and not handed on."""
        self.late_takers.begin(now)
        for parcel in stored:
            mine = tuple(d for d in parcel.destinations if d.broker == self._me)
            others = tuple(d for d in parcel.destinations if d.broker != self._me)
            if mine:
                self.late_takers.take_up(parcel.only_for(mine))
            if others:
                self.keep(parcel, others, Reason.BROKER_FAILED, now, effects)

    def keep(
        self,
        parcel: Parcel,
        owed: tuple[Destination, ...],
        reason: str,
        now: float,
        effects: list[Effect],
    ) -> None:
        """Keep what may be tried again: from here, and as if for the first time. Let go of it if it
        may not wait, or there is no room."""
        if may_wait(parcel, reason, self._settings, now):
            if self.waiting.take(parcel.afresh(self._me, owed), now):
                self.mind_memory()
                return
            reason = Reason.QUEUE_FULL
        if reason == Reason.QUEUE_FULL:
            brokers = ", ".join(destination.broker for destination in owed[:MOST_NAMED])
            effects.append(Warn(f"a queue is full: messages for {brokers} are dropped"))
        let_go(self._me, parcel, reason, owed, now, effects)

    def tried_again(self, now: float, effects: list[Effect]) -> Iterator[Parcel]:
        """Parcels whose next try is due, unless it would be in vain."""
        for parcel in self.waiting.due(now):
            if parcel.expires_at < now:
                let_go(self._me, parcel, Reason.EXPIRED, parcel.destinations, now, effects)
            elif parcel.durable or is_fresh(parcel, self._settings, now):  # it may be old by now
                yield parcel
            else:
                let_go(self._me, parcel, Reason.EXHAUSTED, parcel.destinations, now, effects)

    def given_out(
        self, interests: InterestTable, now: float, effects: list[Effect]
    ) -> Iterator[Parcel]:
        """Serve those who could not say before a durable message came that they want it: clients
        here at once, other brokers by parcels that are to be sent."""
        for held in self.late_takers:
            parcel, served, message = held.parcel, held.served, held.parcel.message
            wanted = interests.wanted(message)
            if held.published_here:
                owed = wanted.destinations(message.contract)
                if late := tuple(d for d in owed if d.broker not in served):
                    effects.append(Store(self.late_takers.give(held, late)))
                    yield parcel.afresh(self._me, late)
            else:
                age_s = now - parcel.born_at
                taking = wanted.in_time(message.contract, age_s)
                if takers := tuple(taker for taker in taking if taker not in served):
                    hops = len(parcel.path) - 1
                    effects.append(Deliver(takers, message, age_s))
                    row = Delivered(now, self._me, message.id, age_s, hops, takers)
                    effects.append(Record(row))
                    served.update(takers)
        self.late_takers.served(now, effects)

    # ---- memory

    def is_full(self) -> bool:
        """Is so much kept that is durable that no more can be taken?"""
        return self._durable_bytes() >= self._settings.waiting_bytes

    def mind_memory(self) -> None:
        """Slow publishers when much that is durable is kept, until little is."""
        kept_bytes, most_bytes = self._durable_bytes(), self._settings.waiting_bytes
        if kept_bytes >= CROWDED_FROM * most_bytes:
            self._crowded[KEPT] = None
        elif kept_bytes < ROOMY_BELOW * most_bytes:
            self._crowded.pop(KEPT, None)

    def _durable_bytes(self) -> int:
        return self.waiting.durable_bytes + self.late_takers.size_bytes
