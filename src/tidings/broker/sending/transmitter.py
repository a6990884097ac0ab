"""How frames leave: parcels when the link has room, best first; what must arrive, until answered.

Data is sent at most `transmissions` times to one neighbour and is then given up; control frames
(interests, links, gossip) are repeated for ever, ever more slowly. Both keep their transmission id,
so that the other side knows a repeat when it sees one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from msgspec.structs import replace

from tidings.broker.control.link_state import aged
from tidings.broker.effects import Effect, Forget, Send
from tidings.broker.frames import (
    ACK,
    CONTROL_BYTES,
    COUNTED_AS,
    DATA,
    REPEAT,
    Ack,
    ControlFrame,
    Data,
    Echo,
    Links,
    Probe,
    ack_bytes,
    control_bytes,
)
from tidings.broker.records import acknowledged, forwarded, let_go
from tidings.broker.sending.lag import Lag
from tidings.broker.sending.link import LinkEnd
from tidings.broker.sending.retransmission import Pending, Unanswered
from tidings.broker.settings import Settings
from tidings.core.links.meter import LinkMeter
from tidings.core.message_ids import SERIAL_BITS
from tidings.core.parcel import Parcel
from tidings.core.trace import Reason

INCARNATIONS = 1 << 31  # whose transmission ids differ
CONTROL_BACKOFF_LIMIT = 6  # a control frame is repeated at most 2^6 timeouts apart

# Seconds from leaving to the answer, bytes (0 for a control frame), whether it was sent once.
_Trip = tuple[float, int, bool]


class Transmitter:
    """The sending side of all links of one broker, and what it still expects answers to."""

    def __init__(
        self, me: str, settings: Settings, links: dict[str, LinkEnd], incarnation: int
    ) -> None:
        self.links = links  # may change, as neighbours come and go
        self.wake_at = inf  # when an answer may be overdue: never too late, at times too early
        self.lag = Lag()
        self.crowded: dict[str, None] = {}  # neighbours for whom so much waits that it must end
        self._me, self._settings = me, settings
        self._unanswered = Unanswered()
        # No incarnation repeats an id of another; a huge one must not lead beyond `Whole`.
        self._transmission = (incarnation % INCARNATIONS) << SERIAL_BITS
        self._hops = settings.trace == "hops"
        self._measured = settings.estimates == "measured"

    # ---- sending

    def send(self, link: LinkEnd, frame: Probe | Echo, effects: list[Effect]) -> None:
        """Send a frame that is not repeated."""
        link.count(COUNTED_AS[type(frame)], CONTROL_BYTES)
        effects.append(Send(link.neighbour, frame, CONTROL_BYTES, 1))

    def acknowledge(
        self, link: LinkEnd, transmissions: tuple[int, ...], effects: list[Effect]
    ) -> None:
        """Answer all of these by one frame."""
        size_bytes = ack_bytes(len(transmissions))
        link.count(ACK, size_bytes)
        effects.append(Send(link.neighbour, Ack(transmissions), size_bytes, 1))

    def tell(self, link: LinkEnd, frame: ControlFrame, now: float, effects: list[Effect]) -> None:
        """Send a control frame that is repeated until it is acknowledged."""
        self._transmission += 1
        numbered = replace(frame, transmission=self._transmission)
        pending = Pending(link.neighbour, numbered, None, control_bytes(frame), now)
        self._insist(link, pending, now + link.patience_s(0), effects)

    def enqueue(self, link: LinkEnd, parcel: Parcel, now: float, effects: list[Effect]) -> None:
        """Let a parcel leave when it is its turn: at once, if nothing waits before it."""
        if link.outbox.passes(parcel) and link.takes_more() and parcel.expires_at >= now:
            self._leave(link, parcel, now, effects)
            return
        link.outbox.push(parcel, now)
        self.pump(link, now, effects)
        if link.outbox.size_bytes and link.outbox.crowded():
            self.crowded[link.neighbour] = None

    def pump(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        """Let parcels leave, best first, for as long as the link takes them."""
        self._let_leave(link, now, effects)
        if self.crowded and link.outbox.roomy():
            self.crowded.pop(link.neighbour, None)

    def _let_leave(self, link: LinkEnd, now: float, effects: list[Effect]) -> None:
        outbox = link.outbox
        if outbox.deletes:
            for lost in outbox.doomed(now):
                reason = Reason.EXPIRED if lost.expires_at < now else Reason.UNLIKELY
                let_go(self._me, lost, reason, lost.destinations, now, effects)
        while outbox.size_bytes and link.takes_more():
            parcel = outbox.pop(now)
            if parcel is None:
                return
            if parcel.expires_at < now:
                let_go(self._me, parcel, Reason.EXPIRED, parcel.destinations, now, effects)
                continue
            self._leave(link, parcel, now, effects)

    def _leave(self, link: LinkEnd, parcel: Parcel, now: float, effects: list[Effect]) -> None:
        """Put a parcel on a link that has room for it."""
        self._transmission += 1
        size_bytes = parcel.size_bytes
        frame = Data(self._transmission, parcel.on_the_wire(now))
        pending = Pending(link.neighbour, frame, parcel, size_bytes, now)
        link.room_bytes -= size_bytes
        link.unacknowledged_bytes += size_bytes
        self._transmit(link, pending, parcel, DATA, now, effects)

    def _transmit(
        self,
        link: LinkEnd,
        pending: Pending,
        parcel: Parcel,
        kind: int,
        now: float,
        effects: list[Effect],
    ) -> None:
        """Every copy of a parcel passes through here, so it does without calls where it can."""
        frame, size_bytes = pending.frame, pending.size_bytes
        until = now + link.patience_s(size_bytes) + self.lag.s
        self._unanswered.wait(frame.transmission, pending, until)
        if until < self.wake_at:
            self.wake_at = until
        if parcel.budgets:
            link.budgets.note(parcel, self._me, now)
        link.carried_frames[kind] += 1
        link.carried_bytes[kind] += size_bytes
        link.carried_header_bytes[kind] += size_bytes - len(parcel.message.payload)
        effects.append(Send(link.neighbour, frame, size_bytes, pending.attempt))
        if self._hops:
            effects.append(forwarded(self._me, pending, parcel, now))

    def _insist(self, link: LinkEnd, pending: Pending, until: float, effects: list[Effect]) -> None:
        frame, size_bytes = pending.frame, pending.size_bytes
        self._unanswered.wait(frame.transmission, pending, until)
        self.wake_at = min(self.wake_at, until)
        link.count(COUNTED_AS[type(frame)], size_bytes)
        effects.append(Send(link.neighbour, frame, size_bytes, pending.attempt))

    # ---- answers

    def acknowledged(
        self, link: LinkEnd, ack: Ack, now: float, effects: list[Effect]
    ) -> tuple[float, float] | None:
        """Answers have come; the longest and the shortest round trip that they tell, if any.

        A repeat's tells none (Karn). An answer that comes too late does: a timer that learned from
        punctual answers only would never follow a link that has become slower, and would give up
        every parcel on it.
        """
        link.answered_at, awaited = now, len(self._unanswered)
        trips: list[_Trip] = []
        for transmission in ack.transmissions:
            if transmission > link.newest_answered:
                link.newest_answered = transmission
            pending = self._unanswered.answered(transmission, link.neighbour)
            if pending is None:
                if transmission in link.given_up:
                    sent_at, size_bytes = link.given_up.pop(transmission)
                    trips.append((now - sent_at, size_bytes, True))
                continue
            size_bytes = 0
            if pending.parcel is not None:
                size_bytes = pending.size_bytes
                self._handed_over(link, pending, pending.parcel, now, effects)
            if self._measured:
                trips.append((now - pending.sent_at, size_bytes, pending.attempt == 1))
        sample = _sample(link.meter, trips, now) if trips else None
        if len(self._unanswered) < awaited and link.outbox.size_bytes:
            self.pump(link, now, effects)
        if trips:
            link.meter.carried(trips, link.outbox.size_bytes > 0, now)
        if not self._unanswered:
            self.wake_at = inf
        return sample

    def _handed_over(
        self, link: LinkEnd, pending: Pending, parcel: Parcel, now: float, effects: list[Effect]
    ) -> None:
        """The neighbour answers for a parcel now."""
        link.unacknowledged_bytes -= pending.size_bytes
        if parcel.durable:
            brokers = tuple(destination.broker for destination in parcel.destinations)
            effects.append(Forget(parcel.message.id, brokers))
        if self._hops:
            effects.append(acknowledged(self._me, pending, now))

    def is_overdue(self, now: float) -> bool:
        """A timer went off: is there an answer that has not come in time? Mostly they all have."""
        self.lag.woken(self.wake_at, now)
        self.wake_at = self._unanswered.first_due()
        return self.wake_at <= now

    def overdue(self, now: float, effects: list[Effect]) -> Iterator[tuple[LinkEnd, Parcel]]:
        """Repeat what was not answered in time; the parcels that were repeated often enough."""
        for _, pending in self._unanswered.overdue(now):
            link, parcel = self.links[pending.neighbour], pending.parcel
            transmission = pending.frame.transmission
            if pending.attempt == 1 and transmission > link.newest_answered:
                until = link.answers_until() + self.lag.s
                if parcel is not None and until <= now:
                    until = link.doubted(now)
                if until > now:
                    self._unanswered.wait(transmission, pending, until)
                    continue
            pending.attempt += 1
            if parcel is None:
                patience_s = link.patience_s(0) * 2 ** min(
                    pending.attempt - 1, CONTROL_BACKOFF_LIMIT
                )
                if type(pending.frame) is Links:
                    pending.frame = aged(pending.frame, now - pending.sent_at)
                    pending.sent_at = now
                self._insist(link, pending, now + patience_s, effects)
            elif parcel.expires_at < now:
                self._release(link, pending, now, effects)
                let_go(self._me, parcel, Reason.EXPIRED, parcel.destinations, now, effects)
            elif pending.attempt <= self._settings.transmissions:
                pending.frame = Data(pending.frame.transmission, parcel.on_the_wire(now))
                self._transmit(link, pending, parcel, REPEAT, now, effects)
            else:
                self._release(link, pending, now, effects)
                yield link, parcel
        self.wake_at = self._unanswered.first_due()

    def _release(self, link: LinkEnd, pending: Pending, now: float, effects: list[Effect]) -> None:
        """Nobody waits for this answer any more, which may make room for another parcel."""
        link.unacknowledged_bytes -= pending.size_bytes
        sent_once = pending.attempt == 2  # the attempt that would come next
        if self._measured and sent_once:
            link.give_up(pending.frame.transmission, pending.sent_at, pending.size_bytes)
        self.pump(link, now, effects)

    def abandon(self, link: LinkEnd, now: float) -> list[Parcel]:
        """The link is gone: all parcels that were sent or waiting on it, oldest first."""
        link.room_bytes, link.unacknowledged_bytes = 0.0, 0
        link.given_up.clear()
        link.meter.pace.interrupted()
        self.crowded.pop(link.neighbour, None)
        unanswered = [
            lost.parcel for lost in self._unanswered.forget(link.neighbour) if lost.parcel
        ]
        return unanswered + list(iter(lambda: link.outbox.pop(now), None))

    def recall(self, link: LinkEnd, now: float) -> list[Parcel]:
        """The link is suspect: all parcels that were sent or waiting on it, oldest first, to go
        another way. An answer that still comes is a late one."""
        sent = self._unanswered.recall(link.neighbour)
        for pending, _ in sent:
            if pending.attempt == 1:
                link.give_up(pending.frame.transmission, pending.sent_at, pending.size_bytes)
        link.unacknowledged_bytes = 0
        link.meter.pace.interrupted()
        self.crowded.pop(link.neighbour, None)
        return [parcel for _, parcel in sent] + list(iter(lambda: link.outbox.pop(now), None))

    def holding(self) -> Iterator[Parcel]:
        """All parcels that wait for a link or for an answer."""
        for link in self.links.values():
            yield from link.outbox
        yield from self._unanswered.parcels()


def _sample(meter: LinkMeter, trips: list[_Trip], now: float) -> tuple[float, float] | None:
    """The longest and the shortest round trip of what was sent once."""
    told = [trip for trip in trips if trip[2]]
    if not told:
        return None
    round_trip_s, size_bytes, _ = max(told)
    longest_s = meter.unburdened(round_trip_s, size_bytes, now)
    if len(told) == 1:
        return longest_s, longest_s
    round_trip_s, size_bytes, _ = min(told)
    return longest_s, meter.unburdened(round_trip_s, size_bytes, now)
