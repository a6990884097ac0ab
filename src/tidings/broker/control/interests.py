"""Who subscribes where: the subscriptions of the whole overlay, kept per destination broker.

Each broker numbers the changes of its own subscriptions and floods them; everybody applies them in
that order. A gap is healed by asking for the whole. What a message owes follows from the matching
index and is remembered per topic as long as no subscription changes and no predicate is involved.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from tidings.broker.frames import Interests
from tidings.core.cache import BoundedCache
from tidings.core.contract import BEST_EFFORT, Contract, Destination, Subscription, destination
from tidings.core.matching import MatchingIndex, TopicPlan
from tidings.core.message import Message, attributes
from tidings.core.predicate import Predicate, parse
from tidings.core.topic import check_filter
from tidings.core.values import Value

PARSED_PREDICATES = 1_000  # kept: clients of one kind state the same
PARSED_CHARACTERS = 1_000  # of one that is kept: its tree takes many times as much
PLANS_BYTES = 32 << 20  # of plans kept; a publisher of ever new topics must not fill the memory
OWED_BYTES = 32 << 20  # of what messages owe to other brokers, by plan and contract
# Of a plan that is kept, beside the topic: as such, and for each subscription.
PLAN_BYTES, SUBSCRIPTION_BYTES = 1_000, 50
DESTINATION_BYTES = 200


class News(Enum):
    """What an update was worth."""

    OLD = "old"
    NEW = "new"
    GAP = "gap"


_Owed = BoundedCache[tuple[int, Contract], tuple[Destination, ...]]  # by plan and contract


class Wanted(Value, frozen=True):
    """Who wants a message: here, and at which other brokers."""

    local: tuple[Subscription, ...]
    local_ids: tuple[str, ...]
    takes_late: bool  # every local subscription takes a late message
    durable: bool  # some other broker's subscription must not miss it
    remote: tuple[tuple[str, tuple[Contract, ...]], ...]
    brokers: tuple[str, ...]  # of `remote`
    plan: int  # its number in `owed`; 0 if it is for one message only
    owed: _Owed

    def destinations(self, contract: Contract) -> tuple[Destination, ...]:
        """What a message under this contract owes to other brokers."""
        known = self.owed.get((self.plan, contract))
        if known is None:
            known = tuple(destination(b, contract, list(wishes)) for b, wishes in self.remote)
            if self.plan:
                self.owed.keep((self.plan, contract), known, DESTINATION_BYTES * (1 + len(known)))
        return known

    def in_time(self, contract: Contract, age_s: float) -> tuple[str, ...]:
        """The local subscriptions that take a message of this age under this contract."""
        return tuple(
            wish.id
            for wish in self.local
            if age_s <= min(contract.deadline_s, wish.contract.deadline_s)
            or (contract.late == "deliver" and wish.contract.late == "deliver")
        )


class _Origin:
    """One broker's subscriptions, at some version of its own counting."""

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.version = 0
        self.keys: dict[str, int] = {}  # subscription id → key in the index


class InterestTable:
    """All subscriptions that this broker knows of, its own among them."""

    def __init__(self, me: str, incarnation: int) -> None:
        self._me = me
        self._index = MatchingIndex()
        self._subscriptions: list[Subscription | None] = []
        self._free_keys: list[int] = []
        self._origins = {me: _Origin(incarnation)}
        self.restarts = 0  # of other brokers, that were noticed
        self._plans = BoundedCache[str, tuple[TopicPlan, Wanted]](PLANS_BYTES)
        self._plans_made, self._owed = 0, _Owed(OWED_BYTES)
        # What was last asked for, and found: messages that follow each other owe the same.
        self._latest: Wanted | None = None
        self._under = BEST_EFFORT
        self._latest_owed: tuple[Destination, ...] = ()
        self._added: dict[str, Subscription] = {}
        self._removed: dict[str, None] = {}
        self._anew = False  # whether the next update is the whole

    def __len__(self) -> int:
        return len(self._index)

    # ---- local clients

    def subscribe(self, subscription: Subscription) -> None:
        self._add(self._origins[self._me], subscription)
        self._added[subscription.id] = subscription
        self._removed.pop(subscription.id, None)

    def unsubscribe(self, subscription_id: str) -> Subscription | None:
        """The subscription that ended; None if there was none."""
        removed = self._remove(self._origins[self._me], subscription_id)
        if removed:
            self._added.pop(subscription_id, None)  # it may have replaced one that others know
            self._removed[subscription_id] = None
        return removed

    # ---- the overlay

    def changes(self) -> Interests | None:
        """The local changes since the last call, as one update; None without any. After
        `begin_anew` it is the whole."""
        mine = self._origins[self._me]
        if self._anew:
            mine.version += 1
            self._added, self._removed, self._anew = {}, {}, False
            return self.whole(self._me)
        if not self._added and not self._removed:
            return None
        base, mine.version = mine.version, mine.version + 1
        added, removed = tuple(self._added.values()), tuple(self._removed)
        self._added, self._removed = {}, {}
        return Interests(0, self._me, mine.incarnation, base, mine.version, added, removed)

    def whole(self, origin: str) -> Interests | None:
        """All that is known of one broker's subscriptions; None of a broker never heard of.

        Even nothing is worth telling: the broker may have had subscriptions before it restarted.
        """
        known = self._origins.get(origin)
        if known is None:
            return None
        held = [self._subscriptions[key] for key in known.keys.values()]
        added = tuple(s for s in held if s is not None and s.id not in self._added)
        return Interests(0, origin, known.incarnation, 0, known.version, added, ())

    def begin_anew(self, incarnation: int) -> None:
        """Tell all of our own under this incarnation from now on."""
        self._origins[self._me].incarnation, self._anew = incarnation, True

    def is_former(self, update: Interests) -> bool:
        """Does it say of us what we have not said? Then a former life did, with the same numbers or
        higher ones. It would be believed, and not we."""
        if update.origin != self._me:
            return False
        mine = self._origins[self._me]
        heard, said = (update.incarnation, update.version), (mine.incarnation, mine.version)
        return heard > said or (heard == said and not update.base and not self._is_said(update))

    def _is_said(self, whole: Interests) -> bool:
        """Have we said just this? Apart from what waits to be told: it may be in it or not."""
        waiting, mine = self._added.keys() | self._removed.keys(), self._origins[self._me].keys
        told = [wish for wish in whole.added if wish.id not in waiting]
        return len(told) == len(mine.keys() - waiting) and all(
            (key := mine.get(wish.id)) is not None and self._subscriptions[key] == wish
            for wish in told
        )

    def origins(self) -> list[str]:
        return sorted(self._origins)

    def apply(self, update: Interests) -> News:
        """Take over what another broker says of its subscriptions."""
        known = self._origins.get(update.origin)
        if update.origin == self._me or (known is None and update.version == 0):
            return News.OLD
        if known is None or update.incarnation > known.incarnation:
            if update.base != 0:
                return News.GAP
            self.restarts += known is not None
            self._forget(update.origin)
            known = self._origins[update.origin] = _Origin(update.incarnation)
        elif update.incarnation < known.incarnation or update.version <= known.version:
            return News.OLD
        if update.base != 0 and update.base != known.version:
            return News.GAP
        for subscription in update.added:
            _checked(subscription)  # all of them before anything changes
        if update.base == 0:
            self._forget(update.origin)
        for subscription_id in update.removed:
            self._remove(known, subscription_id)
        for subscription in update.added:
            self._add(known, subscription)
        known.version = update.version
        return News.NEW

    def forget(self, origin: str) -> None:
        """A broker is no more, and its wishes with it."""
        self._forget(origin)
        self._origins.pop(origin, None)

    def has_durable(self, origin: str) -> bool:
        """Must somebody at that broker not miss what is durable?"""
        known = self._origins.get(origin)
        held = [self._subscriptions[key] for key in known.keys.values()] if known else []
        return any(wish is not None and wish.contract.durable for wish in held)

    # ---- messages

    def wanted(self, message: Message) -> Wanted:
        """Who wants this message."""
        planned = self._plans.get(message.topic)
        if planned is None:
            plan = self._index.plan(message.topic)
            self._plans_made += 1
            wanted = self._who([int(key) for key in plan.unconditional], self._plans_made)
            planned, wishes = (plan, wanted), len(plan.unconditional)
            size_bytes = PLAN_BYTES + SUBSCRIPTION_BYTES * wishes + len(message.topic)
            self._plans.keep(message.topic, planned, size_bytes)
        plan, wanted = planned
        if plan.conditional:
            return self._who([int(key) for key in plan.match(attributes(message))])
        return wanted

    def owed(self, wanted: Wanted, contract: Contract) -> tuple[Destination, ...]:
        """What a message under this contract, which they want, owes to other brokers."""
        if wanted is not self._latest or contract is not self._under:
            self._latest, self._under = wanted, contract
            self._latest_owed = wanted.destinations(contract)
        return self._latest_owed

    def _who(self, keys: list[int], plan: int = 0) -> Wanted:
        found = [s for key in keys if (s := self._subscriptions[key]) is not None]
        found.sort(key=lambda subscription: subscription.id)
        remote: dict[str, list[Contract]] = {}
        for subscription in found:
            if subscription.broker != self._me:
                remote.setdefault(subscription.broker, []).append(subscription.contract)
        local = tuple(s for s in found if s.broker == self._me)
        return Wanted(
            local=local,
            local_ids=tuple(s.id for s in local),
            takes_late=all(s.contract.late == "deliver" for s in local),
            durable=any(s.contract.durable for s in found if s.broker != self._me),
            remote=tuple((broker, tuple(wishes)) for broker, wishes in sorted(remote.items())),
            brokers=tuple(sorted(remote)),
            plan=plan,
            owed=self._owed,
        )

    # ---- the index

    def _add(self, origin: _Origin, subscription: Subscription) -> None:
        where = _checked(subscription)  # before anything changes
        self._remove(origin, subscription.id)
        key = self._free_keys.pop() if self._free_keys else len(self._subscriptions)
        self._index.add(key, subscription.topic, where)
        if key == len(self._subscriptions):
            self._subscriptions.append(subscription)
        else:
            self._subscriptions[key] = subscription
        origin.keys[subscription.id] = key
        self._plans.clear()
        self._owed.clear()

    def _remove(self, origin: _Origin, subscription_id: str) -> Subscription | None:
        key = origin.keys.pop(subscription_id, None)
        if key is None:
            return None
        self._index.remove(key)
        removed, self._subscriptions[key] = self._subscriptions[key], None
        self._free_keys.append(key)
        self._plans.clear()
        self._owed.clear()
        return removed

    def _forget(self, name: str) -> None:
        origin = self._origins.get(name)
        for subscription_id in list(origin.keys) if origin else []:
            assert origin is not None
            self._remove(origin, subscription_id)


def _checked(subscription: Subscription) -> Predicate | None:
    """The predicate of a subscription, if that and the filter make sense."""
    check_filter(subscription.topic)
    where = subscription.where
    if not where:
        return None
    return _parsed(where) if len(where) <= PARSED_CHARACTERS else parse(where)


@lru_cache(maxsize=PARSED_PREDICATES)
def _parsed(where: str) -> Predicate:
    return parse(where)
