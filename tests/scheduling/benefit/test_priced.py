"""`priced`: a link learns what its time is worth, and wastes none of it on what earns far less."""

from math import exp, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_message, pinned
from support.prospects import Known
from support.values import replace

from tidings.broker.sending.outbox import Outbox
from tidings.core.contract import Destination, Group
from tidings.core.links.outlook import Outlook
from tidings.core.parcel import Parcel
from tidings.scheduling import POLICIES
from tidings.scheduling.benefit.priced import MEMORY, SHARE, Priced
from tidings.scheduling.benefit.queue import Benefit
from tidings.scheduling.options import BenefitOptions

SENDING_S = 1.0  # for a message of a thousand bytes
SIZE_BYTES = 1_000


def a_link(s_per_byte: float = SENDING_S / SIZE_BYTES) -> Known:
    return Known({"b2": Outlook(1, 0.0, s_per_byte)}, s_per_byte)


def a_parcel(
    price: float, born_at: float = 0.0, deadline_s: float = 1e6, size_bytes: int = SIZE_BYTES
) -> Parcel:
    """One whose chances are certain for a very long time."""
    owed = (Destination("b2", deadline_s, (Group(deadline_s, 1, price),)),)
    expires_at = born_at + deadline_s
    return Parcel(a_message(), born_at, expires_at, owed, ("b1",), "d-tree", size_bytes)


def busy(
    prices: float = 10.0, known: Known | None = None, options: BenefitOptions | None = None
) -> tuple[Priced, float]:
    """A queue whose link has sent messages of this price for long, without a pause."""
    queue = Priced(known or a_link(), options or BenefitOptions())
    now = 0.0
    for _ in range(200):
        queue.push(a_parcel(prices, now), now)
        assert not list(queue.doomed(now))
        assert queue.pop(now) is not None
        now += SENDING_S
    return queue, now


def deleted(queue: Priced, parcel: Parcel, now: float) -> bool:
    """Is a parcel that comes now sent away?"""
    queue.push(parcel, now)
    if list(queue.doomed(now)) == [parcel]:
        return True
    assert queue.pop(now) is parcel
    return False


def test_it_is_among_the_policies() -> None:
    assert isinstance(POLICIES["priced"](a_link(), BenefitOptions()), Priced)


def test_on_a_busy_link_the_price_of_a_sending_time_is_what_a_message_earns() -> None:
    queue, now = busy(10.0)
    faded = sum(exp(-i / MEMORY) for i in range(1, 201)) / MEMORY  # about 1: a sum, not an integral
    assert queue.least(a_parcel(1.0), now) == pytest.approx(SHARE * 10.0 * faded)
    assert faded == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(("price", "gone"), [(1.5, True), (2.5, False)])
def test_what_earns_far_less_than_usual_is_deleted_though_the_link_is_idle(
    price: float, gone: bool
) -> None:
    queue, now = busy(10.0)
    assert deleted(queue, a_parcel(price, now), now) is gone
    assert len(queue) == 0


def test_a_large_message_must_earn_more() -> None:
    queue, now = busy(10.0)
    assert not deleted(queue, a_parcel(2.5, now), now)
    queue, now = busy(10.0)
    assert deleted(queue, a_parcel(2.5, now, size_bytes=2 * SIZE_BYTES), now)


def test_a_message_with_far_to_go_must_earn_more() -> None:
    known = Known({"b2": Outlook(2, 0.0, 1e-3)}, 1e-3)
    queue, now = busy(10.0, known)
    assert deleted(queue, a_parcel(2.5, now), now)
    assert not deleted(queue, a_parcel(5.0, now), now)
    assert queue.least(replace(a_parcel(1.0), destinations=()), now) > 0.0


def test_the_price_falls_while_a_link_is_idle() -> None:
    queue, now = busy(10.0)
    assert not deleted(queue, a_parcel(0.5, now), now + 3 * MEMORY * SENDING_S)


def test_where_there_is_room_for_everybody_nobody_is_sent_away() -> None:
    """One in ten sending times: a tenth of the price."""
    queue, now = Priced(a_link(), BenefitOptions()), 0.0
    for i in range(100):
        assert not deleted(queue, a_parcel(10.0 if i % 2 else 1.0, now), now)
        now += 10 * SENDING_S


def test_of_all_that_wait_those_worth_too_little_are_deleted_and_the_others_leave() -> None:
    queue, now = busy(10.0)
    for price in (1.0, 9.0, 1.5, 8.0):
        queue.push(a_parcel(price, now), now)
    left: list[float] = []
    gone: list[float] = []
    while queue:
        gone += [p.destinations[0].groups[0].price for p in queue.doomed(now)]
        if (parcel := queue.pop(now)) is not None:
            left.append(parcel.destinations[0].groups[0].price)
    assert (left, gone) == ([9.0, 8.0], [1.5, 1.0])


def test_chances_count_not_prices() -> None:
    known = Known({"b2": Outlook(1, 0.0, 1e-3, (2e-3) ** 2)}, 1e-3)
    queue, now = busy(10.0, known)
    even = a_parcel(3.0, now, deadline_s=1.0)  # as much as it needs on average
    assert deleted(queue, even, now)
    assert not deleted(queue, a_parcel(3.0, now), now)


def test_what_must_not_be_lost_is_not_deleted_for_its_price() -> None:
    queue, now = busy(10.0)
    assert not deleted(queue, replace(a_parcel(0.1, now), durable=True), now)
    assert not deleted(queue, replace(a_parcel(0.1, now), expires_at=inf), now)
    assert not deleted(queue, a_parcel(0.0, now, deadline_s=inf), now)


def test_nothing_is_deleted_if_that_is_asked_for() -> None:
    queue, now = busy(10.0, options=BenefitOptions(delete="none"))
    assert not deleted(queue, a_parcel(0.1, now), now)


def test_on_a_link_that_takes_no_time_nothing_is_scarce() -> None:
    queue, now = busy(10.0, a_link(0.0))
    assert not deleted(queue, a_parcel(0.0, now), now)


def test_prices_scale_out_and_a_clock_that_is_set_back_does_no_harm() -> None:
    (small, now), (large, _) = busy(1.0), busy(1e6)
    for at in (now, now - 50.0):
        least = small.least(a_parcel(1.0), at)
        assert large.least(a_parcel(1.0), at) == pytest.approx(1e6 * least)
        assert least <= SHARE * 1.05


Load = list[tuple[float, float]]  # pause before it comes, price


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 10.0)), max_size=40))
def test_what_is_not_deleted_leaves_in_the_order_of_ebpc(load: Load) -> None:
    options, now = BenefitOptions(), 0.0
    queue, plain = Priced(a_link(), options), Benefit(a_link(), options, options.weight)
    for pause_s, price in load:
        now += pause_s
        parcel = a_parcel(price, now, deadline_s=20.0)
        queue.push(parcel, now)
        plain.push(parcel, now)
    while plain:
        assert queue.pop(now) is plain.pop(now)
    assert queue.pop(now) is None


def test_an_outbox_asks_it_what_to_delete() -> None:
    outbox = Outbox(pinned(scheduling="priced"), a_link())
    assert outbox.deletes
    for now in range(100):
        outbox.push(a_parcel(10.0, now), now)
        assert not list(outbox.doomed(now))
        assert outbox.pop(now) is not None
    outbox.push(a_parcel(1.0, 100.0), 100.0)
    assert len(list(outbox.doomed(100.0))) == 1
    assert (len(outbox), outbox.size_bytes) == (0, 0)
