"""`urgency`: least time to spare per link first, against sorting everything."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_destination, a_message, a_parcel
from support.prospects import Known
from support.values import replace

from tidings.core.links.outlook import Outlook
from tidings.core.message import Budget
from tidings.core.parcel import Parcel
from tidings.scheduling.options import BenefitOptions
from tidings.scheduling.urgency import Urgency

FAR = Outlook(brokers=2, delay_s=0.2, s_per_byte=0.001)  # 100 bytes need 0.1 s more


def a_queue(known: dict[str, Outlook] | None = None, **options: str) -> Urgency:
    return Urgency(Known(known), BenefitOptions(**options))


def planned(id: int, *shares_s: float, deadline_s: float = 9.0) -> Parcel:
    """A parcel that carries its budgets, one for each destination."""
    owed = [a_destination(f"d{n}", (deadline_s, 1)) for n in range(len(shares_s))]
    budgets = tuple(Budget(f"d{n}", share_s, (0.1,)) for n, share_s in enumerate(shares_s))
    return replace(a_parcel(*owed, message=a_message(id=id)), budgets=budgets)


def unplanned(id: int, *deadlines_s: float, born_at: float = 0.0) -> Parcel:
    owed = [a_destination(f"d{n}", (deadline_s, 1)) for n, deadline_s in enumerate(deadlines_s)]
    return a_parcel(*owed, message=a_message(id=id), born_at=born_at)


def emptied(queue: Urgency, now: float = 0.0) -> list[int]:
    return [parcel.message.id for parcel in iter(lambda: queue.pop(now), None)]


def test_the_smallest_carried_budget_goes_first_whatever_the_deadlines() -> None:
    queue = a_queue()
    for id, share_s, deadline_s in ((1, 0.3, 1.0), (2, 0.1, 9.0), (3, 0.2, 5.0)):
        queue.push(planned(id, share_s, deadline_s=deadline_s), 0.0)
    assert emptied(queue) == [2, 3, 1]


def test_of_several_destinations_the_most_urgent_counts() -> None:
    queue = a_queue()
    queue.push(planned(1, 0.2), 0.0)
    queue.push(planned(2, 0.9, 0.1, 0.5), 0.0)
    assert emptied(queue) == [2, 1]


def test_without_a_budget_the_same_is_reckoned_from_the_way_that_is_left() -> None:
    """At 1.0 s: 2.0 s left, 0.3 s needed, two links: 0.85 s each."""
    for share_s, order in ((0.8, [2, 1]), (0.9, [1, 2])):
        queue = a_queue({"d0": FAR})
        queue.push(unplanned(1, 2.5, born_at=0.5), 1.0)
        queue.push(planned(2, share_s), 1.0)
        assert emptied(queue) == order


def test_where_nothing_is_known_of_the_way_the_time_left_counts_whole() -> None:
    for share_s, order in ((1.9, [2, 1]), (2.1, [1, 2])):
        queue = a_queue()
        queue.push(unplanned(1, 2.5, born_at=0.5), 1.0)
        queue.push(planned(2, share_s), 1.0)
        assert emptied(queue) == order


def test_a_budget_for_somebody_else_says_nothing_about_this_destination() -> None:
    queue = a_queue()
    stray = replace(unplanned(1, 5.0), budgets=(Budget("d9", 0.0, (0.1,)),))
    queue.push(stray, 0.0)
    queue.push(planned(2, 4.0), 0.0)
    assert emptied(queue) == [2, 1]


def test_what_has_no_deadline_goes_last_and_by_arrival() -> None:
    queue = a_queue({"d0": FAR})
    for parcel in (unplanned(1, inf), a_parcel("d0", message=a_message(id=2)), planned(3, 8.0)):
        queue.push(parcel, 0.0)
    queue.push(a_parcel(message=a_message(id=4)), 0.0)
    assert emptied(queue) == [3, 1, 2, 4]


share = st.sampled_from([0.0, 0.25, 0.5, 1.0, 4.0])  # few, so that ties are many
kind = st.one_of(
    st.lists(share, min_size=1, max_size=3).map(lambda shares: ("planned", shares)),
    st.lists(st.sampled_from([0.5, 1.0, 8.0, inf]), min_size=1, max_size=3).map(
        lambda deadlines: ("unplanned", deadlines)
    ),
)


def spare_s(parcel: Parcel, now: float) -> float:
    """By the definition, with what `FAR` says of d1 and nothing known of the others."""
    left = [inf]
    for destination in parcel.destinations:
        carried = [b.share_s for b in parcel.budgets if b.destination == destination.broker]
        until_s = parcel.born_at + destination.deadline_s - now
        reckoned = (until_s - 0.3) / 2 if destination.broker == "d1" else until_s
        left.append(carried[0] if carried else reckoned)
    return min(left)


@given(st.lists(st.tuples(st.booleans(), kind), max_size=60))
def test_the_order_is_that_of_sorting_by_spare_time_and_arrival(
    steps: list[tuple[bool, tuple[str, list[float]]]],
) -> None:
    queue, waiting = a_queue({"d1": FAR}), list[tuple[float, int, Parcel]]()
    for number, (push, (how, values)) in enumerate(steps):
        now = number / 4
        if push:
            made = planned(number, *values) if how == "planned" else unplanned(number, *values)
            queue.push(made, now)
            waiting.append((spare_s(made, now), number, made))
        else:
            waiting.sort(key=lambda each: each[:2])
            expected = waiting.pop(0)[2] if waiting else None
            assert queue.pop(now) is expected
        assert len(queue) == len(waiting)
    assert emptied(queue) == [number for _, number, _ in sorted(waiting, key=lambda w: w[:2])]


@pytest.mark.parametrize(("delete", "gone"), [("all", [1]), ("benefit", []), ("none", [])])
def test_what_has_no_chance_is_deleted_when_its_turn_has_come_if_that_is_asked_for(
    delete: str, gone: list[int]
) -> None:
    queue = a_queue({"d0": FAR}, delete=delete)
    late = a_destination("d0", (0.1, 1), expires_s=0.1)
    queue.push(a_parcel(late, message=a_message(id=1)), 0.0)
    queue.push(unplanned(2, 9.0), 0.0)
    assert [parcel.message.id for parcel in queue.doomed(0.0)] == gone
    assert emptied(queue) == [id for id in (1, 2) if id not in gone]
