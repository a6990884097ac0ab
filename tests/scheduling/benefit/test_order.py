"""Every policy gives out what a rescan of all that waits would choose, whatever happens."""

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.builders import a_message
from support.prospects import Known

from tidings.core.contract import Destination, Group
from tidings.core.links.outlook import Outlook
from tidings.core.parcel import Parcel
from tidings.scheduling import POLICIES
from tidings.scheduling.base import Queue
from tidings.scheduling.benefit.queue import VOID_PLACES, Benefit
from tidings.scheduling.benefit.worth_over_time import WorthOverTime
from tidings.scheduling.chances import curves_of, success
from tidings.scheduling.options import BenefitOptions

UNLIKELY = 0.05


def average_lifetime_s(parcel: Parcel, now: float, unexpired: bool) -> float:
    """By the definition, subscription by subscription; of the last to end, if all have."""
    ends = [g.deadline_s for d in parcel.destinations for g in d.groups for _ in range(g.count)]
    alive = [end for end in ends if not unexpired or parcel.born_at + end > now]
    return parcel.born_at + (sum(alive) / len(alive) if alive else max(ends))


class Watched:
    """A queue beside a plain list of what waits in it, in the order of arrival."""

    def __init__(self, queue: Queue, known: Known, deletes_at_head: bool = False) -> None:
        self.queue, self.known, self.deletes_at_head = queue, known, deletes_at_head
        self.waiting: list[Parcel] = []

    def key(self, parcel: Parcel, now: float) -> float:
        """What is least leaves first; equals by arrival."""
        raise NotImplementedError

    def first(self, now: float) -> Parcel:
        return min(self.waiting, key=lambda parcel: self.key(parcel, now))

    def push(self, parcel: Parcel, now: float) -> None:
        self.queue.push(parcel, now)
        self.waiting.append(parcel)

    def pop(self, now: float) -> None:
        popped = self.queue.pop(now)
        if not self.waiting:
            assert popped is None
            return
        assert popped is not None
        assert popped.message.id == self.first(now).message.id
        self._leaves(popped)

    def delete(self, now: float) -> None:
        deleted = list(self.queue.doomed(now))
        if not self.deletes_at_head:
            hopeless = [parcel.message.id for parcel in self.waiting if self.is_doomed(parcel, now)]
            assert sorted(parcel.message.id for parcel in deleted) == hopeless
        for parcel in deleted:
            if self.deletes_at_head:
                assert parcel.message.id == self.first(now).message.id
                assert self.is_doomed(parcel, now)
            self._leaves(parcel)
        if self.deletes_at_head and self.waiting:
            assert not self.is_doomed(self.first(now), now)

    def is_doomed(self, parcel: Parcel, now: float) -> bool:
        """Eq. 11, for what may be lost."""
        if parcel.durable or parcel.expires_at == inf:
            return False
        curves = curves_of(parcel, self.known)
        return all(success(curve, now) <= UNLIKELY for curve in curves)

    def _leaves(self, parcel: Parcel) -> None:
        """Exactly once: it must have been there."""
        (place,) = [i for i, p in enumerate(self.waiting) if p.message.id == parcel.message.id]
        del self.waiting[place]


class WatchedFifo(Watched):
    def key(self, parcel: Parcel, now: float) -> float:
        return 0.0


class WatchedLifetime(Watched):
    unexpired = False

    def key(self, parcel: Parcel, now: float) -> float:
        return average_lifetime_s(parcel, now, self.unexpired)


class WatchedUnexpired(WatchedLifetime):
    unexpired = True


class WatchedBenefit(Watched):
    def key(self, parcel: Parcel, now: float) -> float:
        assert isinstance(self.queue, Benefit)
        value = self.queue.worth(parcel, now)
        assert value == value
        return -value


def all_watched(known: Known) -> list[Watched]:
    some = BenefitOptions(unlikely=UNLIKELY)
    every = BenefitOptions(unlikely=UNLIKELY, delete="all")
    unexpired = BenefitOptions(unlikely=UNLIKELY, delete="all", lifetimes="unexpired")
    later = BenefitOptions(unlikely=UNLIKELY, postponement=2.0, weight=0.3)
    return [
        WatchedFifo(POLICIES["fifo"](known, every), known, deletes_at_head=True),
        WatchedLifetime(POLICIES["rl"](known, every), known, deletes_at_head=True),
        WatchedUnexpired(POLICIES["rl"](known, unexpired), known, deletes_at_head=True),
        WatchedBenefit(POLICIES["eb"](known, some), known),
        WatchedBenefit(POLICIES["pc"](known, some), known),
        WatchedBenefit(POLICIES["ebpc"](known, some), known),
        WatchedBenefit(POLICIES["ebpc"](known, later), known),
    ]


BROKERS = ("b2", "b3", "b4")
groups = st.builds(
    Group,
    st.one_of(st.just(inf), st.integers(1, 80).map(lambda n: n / 2)),
    st.integers(1, 3),
    st.sampled_from([0.0, 1.0, 2.0, 3.0]),
)
owed = st.dictionaries(
    st.sampled_from(BROKERS), st.lists(groups, min_size=1, max_size=3), min_size=1
)
ways = st.builds(
    Outlook,
    st.integers(1, 4),
    st.sampled_from([0.0, 0.125, 1.0]),
    st.sampled_from([0.0, 1e-5, 1e-4]),
    st.sampled_from([0.0, 1e-10, 1e-9, 1e-8]),
)
seconds = st.one_of(st.integers(0, 20).map(lambda n: n / 4), st.floats(0.0, 30.0))


class Order(RuleBasedStateMachine):
    """Parcels come and go, time passes, ways change."""

    def __init__(self) -> None:
        super().__init__()
        self.known = Known({"b2": Outlook(1, 0.0, 1e-4, 1e-9)}, s_per_byte=1e-4)
        self.watched = all_watched(self.known)
        self.now, self.arrivals = 100.0, 0

    def each(self, act: Callable[[Watched], None]) -> None:
        for watched in self.watched:
            act(watched)

    @rule(
        owed=owed,
        age_s=seconds,
        size_bytes=st.sampled_from([0, 1_000, 10_000, 50_000]),
        expires_at=st.sampled_from([1e9, 1e9, inf]),
        durable=st.sampled_from([False, False, True]),
    )
    def push(
        self,
        owed: dict[str, list[Group]],
        age_s: float,
        size_bytes: int,
        expires_at: float,
        durable: bool,
    ) -> None:
        self.arrivals += 1
        destinations = tuple(Destination(b, inf, tuple(groups)) for b, groups in owed.items())
        message, born_at = a_message(id=self.arrivals), self.now - age_s
        path, strategy = ("b1",), "d-tree"
        parcel = Parcel(
            message, born_at, expires_at, destinations, path, strategy, size_bytes, durable=durable
        )
        self.each(lambda watched: watched.push(parcel, self.now))

    @rule(count=st.integers(1, 3))
    def pop(self, count: int) -> None:
        for _ in range(count):
            self.each(lambda watched: watched.pop(self.now))

    @rule()
    def delete(self) -> None:
        self.each(lambda watched: watched.delete(self.now))

    @rule(passed_s=seconds)
    def time_passes(self, passed_s: float) -> None:
        self.now += passed_s

    @rule(passed_s=seconds)
    def the_link_is_free_again(self, passed_s: float) -> None:
        self.now += passed_s
        self.each(lambda watched: watched.pop(self.now))

    @rule(seconds=seconds)
    def the_clock_is_set_back(self, seconds: float) -> None:
        self.now -= seconds

    @rule(broker=st.sampled_from(BROKERS), way=st.one_of(st.none(), ways))
    def a_way_changes(self, broker: str, way: Outlook | None) -> None:
        self.known.outlooks.pop(broker, None)
        if way is not None:
            self.known.outlooks[broker] = way
        self.known.version += 1

    @rule(s_per_byte=st.sampled_from([0.0, 1e-5, 1e-4, 1.05e-4]))
    def the_link_changes(self, s_per_byte: float) -> None:
        self.known.s_per_byte = s_per_byte

    @invariant()
    def nothing_is_lost_or_added(self) -> None:
        for watched in self.watched:
            assert len(watched.queue) == len(watched.waiting)
            waiting = sorted(parcel.message.id for parcel in watched.queue)
            assert waiting == [parcel.message.id for parcel in watched.waiting]

    def teardown(self) -> None:
        while any(watched.waiting for watched in self.watched):
            self.each(lambda watched: watched.pop(self.now))
            self.now += 1.0


TestOrder = Order.TestCase
TestOrder.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)


# ---- cases that a person may ask about


def a_parcel_worth(
    id: int, price: float, deadline_s: float = inf, size_bytes: int = 1_000
) -> Parcel:
    owed = (Destination("b2", inf, (Group(deadline_s, 1, price),)),)
    return Parcel(a_message(id=id), 0.0, 1e9, owed, ("b1",), "d-tree", size_bytes)


def order(policy: str, known: Known, *parcels: Parcel, now: float = 0.0) -> list[int]:
    queue = POLICIES[policy](known, BenefitOptions(delete="none"))
    for parcel in parcels:
        queue.push(parcel, 0.0)
    return [parcel.message.id for _ in parcels if (parcel := queue.pop(now))]


@pytest.mark.parametrize("policy", ["eb", "ebpc"])
def test_what_earns_nothing_leaves_last_and_by_arrival(policy: str) -> None:
    parcels = [a_parcel_worth(id, price) for id, price in ((1, 0.0), (2, 0.0), (3, 0.1), (4, 0.0))]
    assert order(policy, Known(s_per_byte=1e-3), *parcels) == [3, 1, 2, 4]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_what_is_alike_leaves_by_arrival(policy: str) -> None:
    known = Known({"b2": Outlook(1, 0.0, 1e-3, 1e-6)}, s_per_byte=1e-3)
    parcels = [a_parcel_worth(id, 2.0, 5.0) for id in range(50)]
    for now in (0.0, 3.0, 4.0, 5.0, 50.0):
        assert order(policy, known, *parcels, now=now) == list(range(50))


@pytest.mark.parametrize("policy", ["pc", "ebpc"])
def test_what_cannot_wait_leaves_before_what_can(policy: str) -> None:
    known = Known({"b2": Outlook(1, 0.0, 1e-3, 1e-9)}, s_per_byte=1e-3)
    patient, urgent = a_parcel_worth(1, 1.0, 60.0), a_parcel_worth(2, 1.0, 1.5)
    assert order(policy, known, patient, urgent) == [2, 1]


def test_over_a_link_without_a_rate_nothing_is_urgent_and_arrival_decides() -> None:
    parcels = [a_parcel_worth(id, price, 5.0) for id, price in ((1, 1.0), (2, 9.0))]
    assert order("pc", Known(), *parcels) == [1, 2]
    assert order("ebpc", Known(), *parcels) == [2, 1]


def test_equals_are_not_valued_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, plain = [0], WorthOverTime.at

    def counted(worth: WorthOverTime, at: float, weight: float, first_s: float) -> float:
        looks[0] += 1
        return plain(worth, at, weight, first_s)

    monkeypatch.setattr(WorthOverTime, "at", counted)
    for policy in ("eb", "pc", "ebpc"):
        queue = POLICIES[policy](Known(s_per_byte=1e-3), BenefitOptions())
        for id in range(1_000):
            queue.push(a_parcel_worth(id, 2.0), 0.0)
        queue.pop(1.0)
        looks[0] = 0
        for now in range(2, 102):
            queue.pop(float(now))
        assert looks[0] <= 300


@pytest.mark.parametrize("policy", ["eb", "pc", "ebpc"])
@pytest.mark.parametrize("delete", ["benefit", "none"])
def test_what_has_left_is_forgotten(policy: str, delete: str) -> None:
    known = Known({"b2": Outlook(1, 0.0, 1e-3, 1e-6)}, s_per_byte=1e-3)
    queue = POLICIES[policy](known, BenefitOptions(delete=delete))  # type: ignore[arg-type]
    assert isinstance(queue, Benefit)
    for id in range(2_000):
        queue.push(a_parcel_worth(id, 1.0, 1e6 + id), float(id))
        if id >= 5:
            queue.pop(float(id))
    kept = len(queue._best) + len(queue._lapses) + len(queue._dooms)
    assert kept <= 3 * (VOID_PLACES + 2 * len(queue) + 1)


@pytest.mark.parametrize("at", [46.5, 47.0, 47.5, 48.0, 48.5, 49.0])
def test_what_was_far_below_is_seen_when_it_has_become_urgent(at: float) -> None:
    known = Known({"b2": Outlook(1, 0.0, 1e-3, 2.5e-7)}, s_per_byte=1e-3)
    queue = POLICIES["pc"](known, BenefitOptions())
    queue.push(a_parcel_worth(1, 0.4, 1.5), 0.0)
    assert queue.pop(0.0) is not None  # so little is what is being sent
    rising, lesser = a_parcel_worth(2, 1.0, 50.0), a_parcel_worth(3, 0.5, 50.0)
    queue.push(rising, 0.0)
    queue.push(lesser, at)
    assert queue.pop(at) is rising


def test_a_clock_that_is_set_back_revives_lifetimes_that_had_ended() -> None:
    queue = POLICIES["rl"](Known(), BenefitOptions(lifetimes="unexpired"))
    groups = (Group(2.0, 1, 1.0), Group(10.0, 1, 1.0))
    two_lives = Parcel(
        a_message(id=1), 0.0, inf, (Destination("b2", inf, groups),), ("b1",), "d-tree", 9
    )
    queue.push(two_lives, 0.0)
    for id in (2, 3):
        queue.push(a_parcel_worth(id, 1.0, 8.0), 0.0)
    first = queue.pop(3.0)  # 8 s, before the 10 s that are left of the other
    assert first is not None
    assert first.message.id == 2
    assert queue.pop(1.0) is two_lives  # 6 s on average, again
