"""How much of what was published has come in time, so far?

Every publication of a live run carries a number, in the last bytes of its payload. Who publishes
tells how many clients are to get it and by when; who receives it tells the number. What is missing
when the last deadline of a publication has passed counts as lost, until it comes after all: then it
is late. The brokers' traces say the same in the end, of each subscription and more exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf

from msgspec import Struct

from tidings.core.contract import BEST_EFFORT, Contract, Subscription, TopicPolicy
from tidings.core.matching import MatchingIndex, TopicPlan
from tidings.core.predicate import parse
from tidings.core.topic import matches

NUMBER_BYTES = 8  # of a payload; a smaller one cannot be followed
PATIENCE_S = 30.0  # with what has no deadline, before it counts as lost
NOT_FOLLOWED = 0

Properties = tuple[tuple[str, str], ...]


class _UnderWay(Struct, gc=False):
    sent_at: float
    deadline_s: float  # the publisher's
    missing: int  # clients that are still to get it


class _Takers(Struct, frozen=True):
    clients: int
    longest_s: float  # the longest deadline among them


class _Asked(Struct, frozen=True):
    """Who wants the messages of a topic."""

    plan: TopicPlan
    always: _Takers | None  # None if that depends on a message's properties
    default_s: float  # the deadline where the publisher states none


class Punctuality:
    """Counts what came in time, what came late, and what did not come."""

    def __init__(self, wishes: Iterable[Subscription], policies: Iterable[TopicPolicy]) -> None:
        self.on_time = self.late = self.lost = 0
        self._wishes, self._policies = list(wishes), tuple(policies)
        self._index, self._asked = MatchingIndex(), dict[str, _Asked]()
        for key, wish in enumerate(self._wishes):
            self._index.add(key, wish.topic, parse(wish.where) if wish.where else None)
        self._under_way: dict[int, _UnderWay] = {}
        self._due: list[tuple[float, int]] = []  # by instant: when which number has to be there
        self._last = NOT_FOLLOWED

    def ratio(self) -> float | None:
        """The part that came in time, of what can be judged; None if there is nothing yet."""
        judged = self.on_time + self.late + self.lost
        return self.on_time / judged if judged else None

    def expect(self, topic: str, contract: Contract, properties: Properties, now: float) -> int:
        """A message leaves its publisher now; gives its number, or 0 if nobody wants it."""
        asked = self._asked.get(topic) or self._ask(topic)
        takers = asked.always or self._takers(asked.plan.match(dict(properties)))
        if not takers.clients:
            return NOT_FOLLOWED
        deadline_s = contract.deadline_s if contract.deadline_s < inf else asked.default_s
        last_s = min(deadline_s, takers.longest_s)
        self._last += 1
        self._under_way[self._last] = _UnderWay(now, deadline_s, takers.clients)
        heappush(self._due, (now + (last_s if last_s < inf else PATIENCE_S), self._last))
        return self._last

    def arrived(self, number: int, deadline_s: float, now: float) -> None:
        """A client got this message, which it wanted by so many seconds after it was sent."""
        if not NOT_FOLLOWED < number <= self._last:
            return  # somebody else's message
        found = self._under_way.get(number)
        if found is None:
            if self.lost:  # else it is the second time that it comes
                self.lost, self.late = self.lost - 1, self.late + 1
        elif found.missing:
            found.missing -= 1
            if now - found.sent_at <= min(deadline_s, found.deadline_s):
                self.on_time += 1
            else:
                self.late += 1

    def settle(self, now: float) -> None:
        """What should have come by now, and did not, is lost for the time being."""
        while self._due and self._due[0][0] < now:
            self.lost += self._under_way.pop(heappop(self._due)[1]).missing

    def _ask(self, topic: str) -> _Asked:
        """Once for each topic, as most of its messages go the same way."""
        plan = self._index.plan(topic)
        always = None if plan.conditional else self._takers(plan.unconditional)
        fitting = (policy.contract for policy in self._policies if matches(policy.topic, topic))
        default_s = next(fitting, BEST_EFFORT).deadline_s  # as brokers have it
        asked = self._asked[topic] = _Asked(plan, always, default_s)
        return asked

    def _takers(self, keys: Iterable[int]) -> _Takers:
        wanted = [self._wishes[int(key)] for key in keys]
        clients = {(wish.broker, client_name(wish)) for wish in wanted}
        longest_s = max((wish.contract.deadline_s for wish in wanted), default=0.0)
        return _Takers(len(clients), longest_s)


def client_name(wish: Subscription) -> str:
    """The client whose subscription this is; see `core.contract.subscription_id`."""
    return wish.id[len(wish.broker) + 1 : -len(wish.topic) - 1]
