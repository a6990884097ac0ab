"""The two classical orders: first come, and shortest remaining lifetime."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_destination, a_message, a_parcel
from support.prospects import Known

from tidings.core.parcel import Parcel
from tidings.scheduling import POLICIES
from tidings.scheduling.options import BenefitOptions
from tidings.scheduling.simple import Fifo, RemainingLifetime, average_deadline_at


def owed(id: int, *deadlines_s: float, born_at: float = 0.0) -> Parcel:
    """A parcel for one subscription per deadline, each at a broker of its own."""
    destinations = [a_destination(f"b{i}", (d, 1)) for i, d in enumerate(deadlines_s, start=2)]
    return a_parcel(*destinations, message=a_message(id=id), born_at=born_at)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_gives_back_all_that_was_pushed(policy: str) -> None:
    queue = POLICIES[policy](Known(), BenefitOptions())
    for id in range(5):
        queue.push(owed(id, 1.0), 0.0)
    assert len(queue) == 5
    assert sorted(parcel.message.id for parcel in queue) == [0, 1, 2, 3, 4]
    popped = [queue.pop(0.0) for _ in range(6)]
    assert sorted(p.message.id for p in popped if p) == [0, 1, 2, 3, 4]
    assert popped[-1] is None
    assert len(queue) == 0


def test_fifo_keeps_the_order_of_arrival_whatever_the_deadlines() -> None:
    queue = Fifo(Known(), BenefitOptions())
    for id, deadline_s in ((1, 9.0), (2, 1.0), (3, 5.0)):
        queue.push(owed(id, deadline_s), 0.0)
    assert [p.message.id for _ in range(3) if (p := queue.pop(0.0))] == [1, 2, 3]


def test_the_shortest_remaining_lifetime_leaves_first_and_ties_by_arrival() -> None:
    queue = RemainingLifetime(Known(), BenefitOptions())
    for id, deadline_s in ((1, 9.0), (2, 1.0), (3, 9.0), (4, inf)):
        queue.push(owed(id, deadline_s), 0.0)
    assert [p.message.id for _ in range(4) if (p := queue.pop(0.0))] == [2, 1, 3, 4]


def test_age_counts_not_only_the_deadline() -> None:
    queue = RemainingLifetime(Known(), BenefitOptions())
    queue.push(owed(1, 3.0, born_at=10.0), 10.0)
    queue.push(owed(2, 5.0, born_at=7.0), 10.0)  # 2 s left, the other has 3 s
    first = queue.pop(10.0)
    assert first is not None
    assert first.message.id == 2


def test_several_subscriptions_count_by_their_average_each_as_often_as_it_is_there() -> None:
    parcel = a_parcel(a_destination("b2", (1.0, 3), (5.0, 1)), a_destination("b3", (4.0, 2)))
    assert average_deadline_at(parcel) == pytest.approx((3 * 1.0 + 5.0 + 2 * 4.0) / 6)
    assert average_deadline_at(a_parcel("b2")) == inf  # owed to nobody in particular


deadline = st.one_of(st.just(inf), st.floats(0.01, 100.0))
arrival = st.tuples(st.floats(0.0, 50.0), st.lists(deadline, min_size=1, max_size=3))


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 5.0), arrival), max_size=60))
def test_rl_equals_looking_at_every_parcel_anew_at_each_instant(
    steps: list[tuple[bool, float, tuple[float, list[float]]]],
) -> None:
    queue, waiting, now = RemainingLifetime(Known(), BenefitOptions()), list[Parcel](), 0.0
    for id, (push, seconds, (age_s, deadlines_s)) in enumerate(steps):
        now += seconds
        if push:
            parcel = owed(id, *deadlines_s, born_at=now - age_s)
            queue.push(parcel, now)
            waiting.append(parcel)
            continue
        popped = queue.pop(now)
        if not waiting:
            assert popped is None
            continue
        remaining_s = [remaining_lifetime_s(parcel, now) for parcel in waiting]
        assert popped is not None
        assert remaining_lifetime_s(popped, now) == pytest.approx(min(remaining_s), abs=1e-9)
        waiting.remove(popped)
        assert len(queue) == len(waiting)


def remaining_lifetime_s(parcel: Parcel, now: float) -> float:
    """By the definition: the mean over subscriptions of deadline minus age."""
    age_s = now - parcel.born_at
    left = [g.deadline_s - age_s for d in parcel.destinations for g in d.groups]
    return sum(left) / len(left)
