"""Whatever is asked for and taken back, in whatever order news of it arrive: every broker knows in
the end what each message owes, as if it had been told all subscriptions one by one."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import inf

from hypothesis import example, given
from hypothesis import strategies as st
from support.builders import a_message

from tidings.broker.control.interests import InterestTable, News
from tidings.broker.frames import Interests
from tidings.core.contract import Contract, Destination, Group, Subscription, Wish
from tidings.core.matching.trie import TopicTrie
from tidings.core.message import Message, attributes
from tidings.core.predicate import parse
from tidings.core.topic import matches

BROKERS = ("b1", "b2", "b3")
TOPICS = ("a", "a/b", "c", "$SYS/a")
LEVELS = ("a", "b", "$c", "")
PROBES = ["/".join(levels) for n in (1, 2, 3, 4) for levels in product(LEVELS, repeat=n)]
PROBES += ["$SYS/a", "c", "$SYS"]
# Without `+/#`, which matches just what `#` does.
FILTERS = [
    *("a", "+", "#", "a/#", "a/+", "a/b", "+/b", "+/+", "a/b/#", "a/+/#", "a/+/b", "+/b/#"),
    *("$c", "$c/#", "$c/+", "$c/a", "/a", "+/a/+", "a/+/+", "a//b", "b/#", "b/a/b", "a/$c"),
]
MESSAGES = [a_message(t, payload) for t in TOPICS for payload in (b"", b'{"x": 1}', b'{"x": 5}')]
Live = dict[str, Subscription]  # by id

# Prices are such that every sum is exact.
contracts = st.builds(
    Contract,
    deadline_s=st.sampled_from([inf, 0.5, 2.0]),
    price=st.sampled_from([1.0, 0.25, 3.0]),
    availability=st.sampled_from([0.0, 0.9]),
    late=st.sampled_from(["deliver", "drop"]),
    durable=st.booleans(),
)
subscriptions = st.builds(
    lambda broker, client, topic, where, contract: Subscription(
        f"{broker}/{client}", broker, topic, where, contract
    ),
    st.sampled_from(BROKERS),
    st.sampled_from(["u", "v", "w", "x", "y"]),
    st.sampled_from(["a", "a/b", "+", "a/+", "a/#", "#", "$SYS/#", "$SYS/a"]),
    st.sampled_from(["", "x < 3", "x >= 1"]),
    contracts,
)
chances = st.floats(0.0, 1.0, exclude_max=True)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("subscribe"), subscriptions),
        st.tuples(st.just("unsubscribe"), chances),
        st.tuples(st.just("tell"), st.sampled_from(BROKERS)),
        st.tuples(st.just("hear"), st.sampled_from(BROKERS), chances),
    ),
    max_size=60,
)


class Overlay:
    """Tables that hear each other's updates in any order, some never and some twice."""

    def __init__(self, exact: bool = True) -> None:
        self.tables = {name: InterestTable(name, 1, exact) for name in BROKERS}
        self.live: Live = {}
        self.told: list[Interests] = []

    def step(self, kind: str, *what: object) -> None:
        if kind == "subscribe":
            (wish,) = what
            assert isinstance(wish, Subscription)
            self.tables[wish.broker].subscribe(wish)
            self.live[wish.id] = wish
        elif kind == "unsubscribe" and self.live:
            wish = self.live.pop(self._chosen(sorted(self.live), what[0]))
            assert self.tables[wish.broker].unsubscribe(wish.id) == wish
        elif kind == "tell":
            if update := self.tables[str(what[0])].changes():
                self.told.append(update)
        elif kind == "hear" and self.told:
            self.hear(str(what[0]), self._chosen(self.told, what[1]))

    def hear(self, name: str, update: Interests) -> None:
        if self.tables[name].apply(update) is News.GAP:
            whole = self.tables[update.origin].whole(update.origin)
            assert whole is not None
            assert self.tables[name].apply(whole) is not News.GAP

    def settle(self) -> None:
        """Each broker hears the newest of every other one, and asks for what it has missed."""
        for name in BROKERS:
            self.step("tell", name)
        for update in reversed(self.told):
            for name in BROKERS:
                self.hear(name, update)

    @staticmethod
    def _chosen(among: list, chance: object) -> object:
        assert isinstance(chance, float)
        return among[int(chance * len(among))]


def owed_by_hand(live: Live, me: str, message: Message) -> tuple[Destination, ...]:
    """Every subscription at another broker, asked one by one."""
    takers: dict[str, list[Contract]] = {}
    for wish in live.values():
        fits = not wish.where or parse(wish.where).matches(attributes(message))
        if wish.broker != me and matches(wish.topic, message.topic) and fits:
            takers.setdefault(wish.broker, []).append(wish.contract)
    return tuple(_destination(broker, asked) for broker, asked in sorted(takers.items()))


def _destination(broker: str, asked: list[Contract]) -> Destination:
    deadlines = sorted({contract.deadline_s for contract in asked})
    alike = {d: [c for c in asked if c.deadline_s == d] for d in deadlines}
    groups = tuple(Group(d, len(c), sum(one.price for one in c)) for d, c in alike.items())
    expires_s = max(inf if c.late == "deliver" else c.deadline_s for c in asked)
    return Destination(broker, expires_s, groups, max(c.availability for c in asked))


def held(table: InterestTable) -> tuple[object, ...]:
    """What a table holds, and how much."""
    known = {name: origin for name, origin in table._origins.items() if origin.asked}
    asked = {
        name: {(*each.asked, each.elsewhere[name]) for each in origin.asked}
        for name, origin in known.items()
    }
    index = table._asked
    sizes = (len(table), len(index), len(index._index))
    return asked, sizes, sum(each is not None for each in index._by_key)


@given(steps)
def test_what_a_message_owes_is_what_all_subscriptions_say_one_by_one(steps: list) -> None:
    overlay = Overlay()
    for step in steps:
        overlay.step(*step)
    overlay.settle()
    for name, table in overlay.tables.items():
        for message in MESSAGES:
            wanted = table.wanted(message)
            assert wanted.destinations(Contract()) == owed_by_hand(overlay.live, name, message)
            durable = [
                wish
                for wish in overlay.live.values()
                if wish.contract.durable and wish.broker in wanted.brokers
                if matches(wish.topic, message.topic)
                if not wish.where or parse(wish.where).matches(attributes(message))
            ]
            assert wanted.durable == bool(durable)
        others = [wish for wish in overlay.live.values() if wish.broker != name]
        for other in set(BROKERS) - {name}:
            is_durable = any(w.contract.durable for w in others if w.broker == other)
            assert table.has_durable(other) == is_durable
        assert len(table) == len(overlay.live)


@given(steps)
def test_what_is_covered_is_not_told_and_all_but_the_numbers_is_the_same(steps: list) -> None:
    overlay = Overlay(exact=False)
    for step in steps:
        overlay.step(*step)
    overlay.settle()
    for name, table in overlay.tables.items():
        for message in MESSAGES:
            found = table.wanted(message).destinations(Contract())
            exact = owed_by_hand(overlay.live, name, message)
            assert [without_numbers(each) for each in found] == [*map(without_numbers, exact)]
            for one, other in zip(found, exact, strict=True):
                for seen, real in zip(one.groups, other.groups, strict=True):
                    assert seen.count >= real.count
                    assert seen.price >= real.price
        assert len(table) == len(overlay.live)
        whole = table.whole(name)
        assert whole is not None
        for wish in whole.wishes:
            others = (w for w in whole.wishes if w is not wish)
            assert not any(is_covered(wish, by=other) for other in others)


def without_numbers(owed: Destination) -> tuple[object, ...]:
    deadlines = [group.deadline_s for group in owed.groups]
    return owed.broker, owed.expires_s, deadlines, owed.availability


def is_covered(wish: Wish, by: Wish) -> bool:
    """Does the other one get whatever this one asks for, of all topics that can tell?"""
    if (wish.where, wish.contract) != (by.where, by.contract):
        return False
    return all(matches(by.topic, topic) for topic in PROBES if matches(wish.topic, topic))


@example(["/a"], "#")
@given(st.lists(st.sampled_from(FILTERS), unique=True), st.sampled_from(FILTERS))
def test_a_trie_finds_the_filters_that_are_wider_and_those_that_are_narrower(
    there: list[str], asked: str
) -> None:
    trie: TopicTrie[str] = TopicTrie()
    others = [each for each in there if each != asked]
    for each in others:
        trie.insert(each, each)
    wider = [each for each in others if is_covered(Wish(asked), by=Wish(each))]
    narrower = [each for each in others if is_covered(Wish(each), by=Wish(asked))]
    found = trie.wider(asked)
    assert found in wider if wider else found is None
    assert sorted(trie.narrower(asked)) == sorted(narrower)


@given(steps, st.booleans())
def test_local_clients_are_served_whatever_happened_before(steps: list, exact: bool) -> None:
    overlay = Overlay(exact)
    for step in steps:
        overlay.step(*step)
    for name, table in overlay.tables.items():
        for message in MESSAGES:
            takers = sorted(
                wish.id
                for wish in overlay.live.values()
                if wish.broker == name
                if matches(wish.topic, message.topic)
                if not wish.where or parse(wish.where).matches(attributes(message))
            )
            wanted = table.wanted(message)
            assert list(wanted.local_ids) == takers
            for age_s in (0.1, 1.0, 3.0):
                in_time = [
                    taker
                    for taker in takers
                    if age_s <= overlay.live[taker].contract.deadline_s
                    or overlay.live[taker].contract.late == "deliver"
                ]
                assert list(wanted.in_time(Contract(), age_s)) == in_time


@given(steps, st.booleans())
def test_what_is_taken_back_is_just_what_was_told(steps: list, exact: bool) -> None:
    overlay = Overlay(exact)
    for step in steps:
        overlay.step(*step)
    overlay.settle()
    for name in BROKERS:
        known: dict[Wish, int] = {}
        for update in (update for update in overlay.told if update.origin == name):
            assert update.wishes
            for wish in update.wishes:
                asked = Wish(wish.topic, wish.where, wish.contract)
                assert known.get(asked, 0) != wish.number, "told what is known"
                known[asked] = wish.number
        now = Counter(
            Wish(wish.topic, wish.where, wish.contract)
            for wish in overlay.live.values()
            if wish.broker == name
        )
        held = {asked: number for asked, number in known.items() if number}
        assert held == now if exact else held.keys() <= now.keys()
        assert sum(held.values()) == sum(now.values())


@given(steps, st.booleans())
def test_a_broker_with_a_history_holds_what_a_fresh_one_does(steps: list, exact: bool) -> None:
    overlay = Overlay(exact)
    for step in steps:
        overlay.step(*step)
    overlay.settle()
    for name, table in overlay.tables.items():
        fresh = InterestTable(name, 1, exact)
        for wish in overlay.live.values():
            if wish.broker == name:
                fresh.subscribe(wish)
        for other in BROKERS:
            whole = overlay.tables[other].whole(other)
            assert whole is not None
            fresh.apply(whole)
        assert held(fresh) == held(table)


@given(steps, st.booleans())
def test_a_broker_that_is_forgotten_leaves_nothing(steps: list, exact: bool) -> None:
    overlay = Overlay(exact)
    for step in steps:
        overlay.step(*step)
    overlay.settle()
    for wish in list(overlay.live.values()):
        overlay.tables[wish.broker].unsubscribe(wish.id)
    for name, table in overlay.tables.items():
        for other in set(BROKERS) - {name}:
            table.forget(other)
        assert held(table) == ({}, (0, 0, 0), 0)
        assert table.origins() == [name]
