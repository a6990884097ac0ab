"""Who else wants a message that comes soon after a restart? Those who could not say so yet.

A broker that has just restarted knows nobody's wishes, and its clients have not come back. A
durable message would then be owed to nobody, and so would one that is published elsewhere while
others know of the restart only. So a broker keeps it, as owed to itself, and gives it to takers as
it hears of them:

- what is published here, to other brokers, for as long as clients may need to come back after this
  broker, or another that it knows, has restarted; those that were given it are stored as its path,
  so that they are not given it again after another restart;
- what comes from others, to clients, until as many have it as it was sent for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from tidings.broker.effects import Effect, Forget, Store
from tidings.core.contract import Destination
from tidings.core.parcel import Parcel
from tidings.core.values import ChangingValue, changed


class HeldForLate(ChangingValue):
    """A message that is kept, as a parcel that is owed to the broker itself."""

    parcel: Parcel
    published_here: bool
    takers: float  # how many want it, as far as is known
    served: set[str]  # brokers, or subscriptions, that it was given to


class LateTakers:
    """Durable messages that are kept for takers a restarted broker does not know yet."""

    def __init__(
        self, me: str, for_s: float, batch_s: float, neighbours: Iterable[str], moves: bool = False
    ) -> None:
        """`moves`: others than these neighbours may come."""
        self._me, self._for_s, self._batch_s, self._moves = me, for_s, batch_s, moves
        self._unmet = set(neighbours)  # those that it was never linked to
        self._held: dict[int, HeldForLate] = {}
        self._told_at = self._back_at = -inf  # when others have told theirs, and clients are back
        self._restarts = 0  # of other brokers, that are known
        self.due_at = inf  # when messages are to be given out, or forgotten
        self.size_bytes = 0  # of all that is held

    def __iter__(self) -> Iterator[HeldForLate]:
        return iter(self._held.values())

    def begin(self, now: float) -> None:
        """The broker has restarted."""
        alone_until = now + self._for_s if self._moves else now  # who is alone is told nothing
        self._told_at = inf if self._unmet else alone_until
        self._back_at = now + self._for_s

    def linked(self, neighbour: str, now: float) -> None:
        """A link came up; the first time, the neighbour has much to tell."""
        if neighbour in self._unmet:
            self._unmet.discard(neighbour)
            if self._told_at > now:
                self._told_at = now + self._for_s
                self._plan()

    def publish(
        self, parcel: Parcel, served: Iterable[str], now: float, effects: list[Effect]
    ) -> None:
        """A durable message was published here, and these brokers are known to want it."""
        if now < self._told_at:
            mine = (Destination(self._me, inf, ()),)
            self._keep(changed(parcel, destinations=mine, path=(self._me, *served)), effects)

    def receive(
        self, parcel: Parcel, served: tuple[str, ...], now: float, effects: list[Effect]
    ) -> None:
        """A durable message came for clients of this broker, and these subscriptions have it."""
        if now < self._back_at and len(served) < _takers(parcel):
            self._keep(parcel, effects).served.update(served)

    def give(self, held: HeldForLate, owed: tuple[Destination, ...]) -> Parcel:
        """It is given to these brokers too; what is to be stored of that."""
        held.served.update(destination.broker for destination in owed)
        return changed(held.parcel, destinations=owed, path=(self._me, *sorted(held.served)))

    def take_up(self, parcel: Parcel) -> HeldForLate:
        """Keeps what is stored; which clients were given it before a restart is not known."""
        first, *given = parcel.path
        here = first == self._me
        takers = inf if here else _takers(parcel)
        known = here and self._me not in given  # else a copy has come back, along a real path
        held = HeldForLate(parcel, here, takers, set(given if known else ()))
        assert parcel.message.id not in self._held, "a message is held once"
        self._held[parcel.message.id] = held
        self.size_bytes += parcel.size_bytes
        self.due_at = min(self.due_at, self._until(held))
        return held

    def heard(self, now: float, restarts: int) -> None:
        """Somebody's wishes have changed; so many restarts of other brokers were seen by now."""
        if restarts > self._restarts:
            self._restarts = restarts
            self._told_at = max(self._told_at, now + self._for_s)
        if self._held:
            self.due_at = min(self.due_at, now + self._batch_s)

    def served(self, now: float, effects: list[Effect]) -> None:
        """All takers that are known have it; what is for nobody else any more is forgotten."""
        for message, held in list(self._held.items()):
            if self._until(held) <= now or len(held.served) >= held.takers:
                del self._held[message]
                self.size_bytes -= held.parcel.size_bytes
                effects.append(Forget(message, (self._me,)))
        self._plan()

    def _keep(self, parcel: Parcel, effects: list[Effect]) -> HeldForLate:
        held = self._held.get(parcel.message.id)
        if held is None:
            held = self.take_up(parcel)
            effects.append(Store(parcel))
        return held

    def _until(self, held: HeldForLate) -> float:
        return self._told_at if held.published_here else self._back_at

    def _plan(self) -> None:
        self.due_at = min(map(self._until, self._held.values()), default=inf)


def _takers(parcel: Parcel) -> int:
    """How many subscriptions here a message is for."""
    return sum(group.count for owed in parcel.destinations for group in owed.groups)
