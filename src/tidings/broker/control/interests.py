"""Who wants what, where: the interests of the whole overlay, aggregated.

What stays at home and what is told
-----------------------------------
A broker knows its own clients one by one. The others hear what is asked for and by how many:
subscriptions that are alike in filter, predicate and contract are one interest, and who they are is
nobody else's business. So what a broker holds of the others grows with what is asked for, and not
with who asks.

Each broker numbers the changes of what it tells and floods them; everybody applies them in that
order. A gap is healed by asking for the whole. What a message owes follows from the matching index
and is remembered per topic as long as nothing changes and no predicate is involved.
"""

from __future__ import annotations

from enum import Enum

from tidings.broker.control.covering import Covering
from tidings.broker.control.interest_index import Interest, InterestIndex, checked_predicate
from tidings.broker.control.told import Told, wish_of
from tidings.broker.control.wanted import Owed, Wanted
from tidings.broker.frames import Interests
from tidings.core.cache import BoundedCache
from tidings.core.contract import (
    BEST_EFFORT,
    Contract,
    Destination,
    Subscription,
    Wish,
)
from tidings.core.matching import TopicPlan
from tidings.core.matching.rows import Keys
from tidings.core.message import Message, attributes

PLANS_BYTES = 32 << 20  # of plans kept; a publisher of ever new topics must not fill the memory
OWED_BYTES = 32 << 20  # of what messages owe to other brokers, by plan and contract
# Of a plan that is kept, beside the topic: as such, for each client (twice a reference, as its name
# is kept anyway), and for each interest, which may be of every broker.
PLAN_BYTES, CLIENT_BYTES, INTEREST_BYTES = 1_000, 16, 200


class News(Enum):
    """What an update was worth."""

    OLD = "old"
    NEW = "new"
    GAP = "gap"


class _Origin:
    """What one broker told, at some version of its own counting."""

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.version = 0
        self.asked: dict[Interest, None] = {}  # of other brokers


class InterestTable:
    """All that this broker knows to be asked for, by its own clients and elsewhere."""

    def __init__(self, me: str, incarnation: int, exact: bool = True) -> None:
        """`exact`: others must know how many want each message (see `covering`)."""
        self._me = me
        self._asked = InterestIndex()
        self._mine: dict[str, Interest] = {}  # by the ids of subscriptions here
        self._elsewhere = 0  # subscriptions at other brokers
        self._told = Told()
        self._count = self._told.count if exact else Covering(self._told).count
        self._origins = {me: _Origin(incarnation)}
        self.restarts = 0  # of other brokers, that were noticed
        self._plans = BoundedCache[str, tuple[TopicPlan, Wanted]](PLANS_BYTES)
        self._plans_made, self._owed = 0, Owed(OWED_BYTES)
        # What was last asked for, and found: messages that follow each other owe the same.
        self._latest: Wanted | None = None
        self._under = BEST_EFFORT
        self._latest_owed: tuple[Destination, ...] = ()
        self._anew = False  # whether the next update is the whole

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._mine) + self._elsewhere

    # ---- local clients

    def subscribe(self, subscription: Subscription) -> None:
        topic, where = subscription.topic, subscription.where
        interest = self._asked.known(topic, where, subscription.contract)
        known = self._mine.get(subscription.id)
        if known is not interest:
            if known is not None:
                self._leave(known, subscription.id)
            interest.clients[subscription.id] = None
            self._mine[subscription.id] = interest
            self._counted(interest)

    def unsubscribe(self, subscription_id: str) -> Subscription | None:
        """The subscription that ended; None if there was none."""
        interest = self._mine.pop(subscription_id, None)
        if interest is None:
            return None
        topic, where, contract = interest.asked
        self._leave(interest, subscription_id)
        return Subscription(subscription_id, self._me, topic, where, contract)

    def _leave(self, interest: Interest, subscription_id: str) -> None:
        interest.clients.pop(subscription_id, None)
        self._counted(interest)
        self._asked.drop_if_unused(interest)

    def _counted(self, interest: Interest) -> None:
        """The number of clients here who ask for it is another one."""
        self._count(interest.asked, len(interest.clients))
        self._forget_plans()

    # ---- the overlay

    def changes(self) -> Interests | None:
        """What changed here since the last call, as one update; None without any. After
        `begin_anew` it is the whole."""
        mine, changed = self._origins[self._me], self._told.changes()
        if self._anew:
            mine.version, self._anew = mine.version + 1, False
            return self.whole(self._me)
        if not changed:
            return None
        base, mine.version = mine.version, mine.version + 1
        return Interests(0, self._me, mine.incarnation, base, mine.version, changed)

    def whole(self, origin: str) -> Interests | None:
        """All that one broker has told; None of a broker never heard of. Changes here that wait to
        be told follow as such.

        Even nothing is worth telling: the broker may have had subscriptions before it restarted.
        """
        known = self._origins.get(origin)
        if known is None:
            return None
        wishes = self._told.whole()
        if origin != self._me:
            wishes = tuple([wish_of(each.asked, each.elsewhere[origin]) for each in known.asked])
        return Interests(0, origin, known.incarnation, 0, known.version, wishes)

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
        is_whole = heard == said and not update.base
        return heard > said or (is_whole and set(update.wishes) != set(self._told.whole()))

    def origins(self) -> list[str]:
        return sorted(self._origins)

    def apply(self, update: Interests) -> News:
        """Take over what another broker says of its clients."""
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
        for wish in update.wishes:
            checked_predicate(wish.topic, wish.where)  # all of them before anything changes
        before = dict(known.asked) if update.base == 0 else {}
        for wish in update.wishes:
            before.pop(self._count_elsewhere(update.origin, known, wish), None)
        for interest in before:
            self._take_back(update.origin, known, interest)
        known.version = update.version
        self._forget_plans()
        return News.NEW

    def forget(self, origin: str) -> None:
        """A broker is no more, and its wishes with it."""
        self._forget(origin)
        self._origins.pop(origin, None)

    def has_durable(self, origin: str) -> bool:
        """Must somebody at that broker not miss what is durable?"""
        known = self._origins.get(origin)
        return known is not None and any(each.contract.durable for each in known.asked)

    def _count_elsewhere(self, broker: str, known: _Origin, wish: Wish) -> Interest:
        """So many ask for this at another broker now."""
        interest = self._asked.known(wish.topic, wish.where, wish.contract)
        if wish.number:
            self._elsewhere += wish.number - interest.elsewhere.get(broker, 0)
            interest.elsewhere[broker] = wish.number
            known.asked[interest] = None
        else:
            self._take_back(broker, known, interest)
        return interest

    def _take_back(self, broker: str, known: _Origin, interest: Interest) -> None:
        self._elsewhere -= interest.elsewhere.pop(broker, 0)
        known.asked.pop(interest, None)
        self._asked.drop_if_unused(interest)

    def _forget(self, name: str) -> None:
        known = self._origins.get(name)
        if known is not None:
            for interest in list(known.asked):
                self._take_back(name, known, interest)
            self._forget_plans()

    # ---- messages

    def wanted(self, message: Message) -> Wanted:
        """Who wants this message."""
        planned = self._plans.get(message.topic)
        if planned is None:
            plan = self._asked.plan(message.topic)
            self._plans_made += 1
            wanted = self._who(plan.unconditional, self._plans_made)
            planned, clients = (plan, wanted), CLIENT_BYTES * len(wanted.local_ids)
            asked = INTEREST_BYTES * len(plan.unconditional)
            size_bytes = PLAN_BYTES + clients + asked + len(message.topic)
            self._plans.keep(message.topic, planned, size_bytes)
        plan, wanted = planned
        if plan.conditional:
            return self._who(plan.match(attributes(message)))
        return wanted

    def owed(self, wanted: Wanted, contract: Contract) -> tuple[Destination, ...]:
        """What a message under this contract, which they want, owes to other brokers."""
        if wanted is not self._latest or contract is not self._under:
            self._latest, self._under = wanted, contract
            self._latest_owed = wanted.destinations(contract)
        return self._latest_owed

    def _who(self, keys: Keys, plan: int = 0) -> Wanted:
        here: dict[Contract, list[str]] = {}
        elsewhere: dict[str, list[tuple[Contract, int]]] = {}
        everybody: list[str] = []
        durable = False
        for interest in self._asked.of(keys):
            contract = interest.contract
            if interest.clients:
                here.setdefault(contract, []).extend(interest.clients)
                everybody.extend(interest.clients)
            for broker, number in interest.elsewhere.items():
                elsewhere.setdefault(broker, []).append((contract, number))
                durable = durable or contract.durable
        everybody.sort()
        remote = tuple([(broker, tuple(asked)) for broker, asked in sorted(elsewhere.items())])
        return Wanted(
            local=tuple([(contract, tuple(ids)) for contract, ids in here.items()]),
            local_ids=tuple(everybody),
            takes_late=all(contract.late == "deliver" for contract in here),
            durable=durable,
            remote=remote,
            brokers=tuple([broker for broker, _ in remote]),
            plan=plan,
            owed=self._owed,
        )

    def _forget_plans(self) -> None:
        self._plans.clear()
        self._owed.clear()
