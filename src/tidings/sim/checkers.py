"""Laws that every run must keep, watched while it runs.

The laws
--------
- Nothing is delivered that was not published.
- Nothing is delivered twice to one subscription, unless its broker restarted and forgot, or the
  message is durable: such a one is tried for longer than anybody remembers.
- No copy crosses a link twice in the same direction: forwarding never loops. (A repeat after a
  timeout is the same crossing; a message that starts afresh after a pause is a new copy.)
- Every publication to every subscription that wants it, at a broker that the publisher's broker
  knows to be interested, ends delivered, dropped with a reason, or in flight at the end: nothing
  vanishes. (Who has just subscribed wants it already, but news takes time. What is on its way to a
  client that unsubscribes need not arrive. Where links come and go, a strategy that spreads copies
  may miss a broker unnoticed: its link may go while the copies are on their way.)

What a broken one does
----------------------
A broken law raises `CheckFailed` with the seed: rerunning that seed is the bug report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise

from tidings.core.contract import ANYBODY
from tidings.core.errors import CheckFailed
from tidings.core.message import Envelope, Message
from tidings.core.parcel import Parcel
from tidings.core.trace import Dropped, Published, Subscribed
from tidings.sim.seen import Seen
from tidings.traces.audience import Held

SPREADS = {"flooding"}  # strategies in which no copy answers for a destination
CLOSED_AFTER = 10.0  # times what brokers remember: no copy can be on its way any more


class Checker:
    """The account of one run. Of what is settled only a bit is kept."""

    def __init__(
        self, scenario: str, seed: int, remember_s: float = 120.0, moving: bool = False
    ) -> None:
        """`remember_s`: for how long brokers may try again; `moving`: links come and go."""
        self._where = f"{scenario}, seed {seed}"
        self._moving, self._spread = moving, set[int]()
        self._held = Held()  # what is asked for just now
        self._owed: dict[int, tuple[str, ...]] = {}  # the other brokers that a message is owed to
        self._interested: dict[int, tuple[str, ...]] = {}  # those there who want it
        self._served: dict[int, set[str]] = {}
        self._complete = Seen()
        self._dropped: dict[int, set[str]] = {}
        # By topic: who wants it, the brokers that it is owed to, and who wants it there; mostly the
        # same again.
        self._latest: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {}
        self._forgetful: set[str] = set()
        self._ended: set[str] = set()  # subscriptions that were taken back
        self._durable: set[int] = set()
        self._open: deque[tuple[float, int]] = deque()  # (published at, message), oldest first
        self._closed_after_s = CLOSED_AFTER * remember_s
        self.publications = 0
        self.deliveries = 0

    def subscribed(self, row: Subscribed) -> None:
        """A client states a wish, or takes it back."""
        if row.active:
            self._held.hold(row.subscription, row.topic, row.predicate)
        else:
            self._held.release(row.subscription)
            self._ended.add(row.subscription)

    def expect(self, message: int, brokers: tuple[str, ...]) -> None:
        """What is going to be published will be owed to these other brokers."""
        self._owed.setdefault(message, brokers)

    def published(self, row: Published) -> None:
        self.publications += 1
        if row.message in self._interested or row.message in self._complete:
            self._fail(f"message {row.message} was published twice")
        owed = self._owed.get(row.message, ())
        interested = self._wanted_there(row, owed)
        if interested or owed:
            if self._moving and row.strategy in SPREADS:
                self._spread.add(row.message)
            self._interested[row.message] = interested
            self._served[row.message] = set()
            self._open.append((row.recorded_at, row.message))
        else:
            self._owed.pop(row.message, None)
            self._complete.add(row.message)
        while self._open and self._open[0][0] < row.recorded_at - self._closed_after_s:
            self._close(self._open.popleft()[1])

    def delivered(self, message: Message, subscriptions: tuple[str, ...]) -> None:
        self.deliveries += len(subscriptions)
        served = self._served.get(message.id)
        if served is None:
            if message.id not in self._complete:
                self._fail(f"message {message.id} was delivered, but never published")
            self._again(message, subscriptions, len(subscriptions))
            return
        before = len(served)
        served.update(subscriptions)
        if len(served) != before + len(subscriptions):
            self._again(message, subscriptions, before + len(subscriptions) - len(served))
        if len(served) >= len(self._interested[message.id]):
            self._settle(message.id, served)

    def sent(self, broker: str, neighbour: str, path: tuple[str, ...]) -> None:
        """A copy that has come along this path leaves for a neighbour."""
        for a, b in pairwise(path):
            if a == broker and b == neighbour:
                steps = " → ".join((*path, neighbour))
                self._fail(f"a copy crosses the link {broker} → {neighbour} again: {steps}")

    def restarted(self, broker: str) -> None:
        """A broker came back, without memory of what it delivered before."""
        self._forgetful.add(broker)

    def stored(self, message: int) -> None:
        """A broker has written the message down, so it is durable."""
        self._durable.add(message)

    def dropped(self, row: Dropped) -> None:
        if row.message in self._interested:
            self._dropped.setdefault(row.message, set()).update(row.destinations)

    def finish(self, in_flight: Iterable[Parcel | Envelope]) -> None:
        """The run has ended with these copies still on their way."""
        for copy in in_flight:
            if copy.message.id in self._interested:
                owed = {destination.broker for destination in copy.destinations}
                self._dropped.setdefault(copy.message.id, set()).update(owed)
        for message in self._interested:
            for subscription in self._unaccounted(message):
                self._fail(f"message {message} to {subscription} vanished")

    def _wanted_there(self, row: Published, owed: tuple[str, ...]) -> tuple[str, ...]:
        """Who wants it, at its publisher's broker and at those that it is owed to."""
        wanted = self._held.audience(row.topic, row.attributes)
        if ANYBODY in owed:
            return wanted
        known = self._latest.get(row.topic)
        if known is None or known[0] is not wanted or known[1] != owed:
            there = {row.broker, *owed}
            interested = tuple(who for who in wanted if _home(who) in there)
            known = self._latest[row.topic] = (wanted, owed, interested)
        return known[2]

    def _unaccounted(self, message: int) -> Iterator[str]:
        """The subscriptions that nobody has served, and no copy was given up for."""
        if message in self._spread:
            return
        served, dropped = self._served[message], self._dropped.get(message, ())
        for subscription in self._interested[message]:
            given_up = _home(subscription) in dropped or ANYBODY in dropped
            settled = subscription in served or given_up
            if not settled and subscription not in self._ended:
                yield subscription

    def _close(self, message: int) -> None:
        """So old that no copy can be on its way: if all is accounted for, it is done with."""
        if message in self._interested and not any(self._unaccounted(message)):
            self._forget(message)

    def _forget(self, message: int) -> None:
        del self._interested[message], self._served[message]
        self._owed.pop(message, None)
        self._dropped.pop(message, None)
        self._spread.discard(message)
        self._complete.add(message)

    def _again(self, message: Message, subscriptions: tuple[str, ...], count: int) -> None:
        self.deliveries -= count
        if _home(subscriptions[0]) not in self._forgetful and message.id not in self._durable:
            self._fail(f"message {message.id} was delivered twice to one of {subscriptions}")

    def _settle(self, message: int, served: set[str]) -> None:
        """It is done with when all have it; at each broker that it is owed to there may be some who
        want it since then, or did until then."""
        if served.issuperset(self._interested[message]):
            here = {_home(subscription) for subscription in served}
            if here.issuperset(self._owed.get(message, ())):
                self._forget(message)

    def _fail(self, problem: str) -> None:
        raise CheckFailed(f"{self._where}: {problem}.")


def _home(subscription: str) -> str:
    """The broker that serves a subscription, by its id."""
    return subscription.partition("/")[0]
