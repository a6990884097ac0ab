"""What a message is worth, and what it owes to whom."""

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.contract import Contract, Destination, Group, destination, subscription_id
from tidings.core.errors import ConfigError


def test_the_default_contract_promises_best_effort() -> None:
    contract = Contract()
    assert contract.deadline_s == inf
    assert contract.late == "deliver"
    assert contract.checked("here") is contract


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deadline_s", 0.0),
        ("deadline_s", -1.0),
        ("deadline_s", nan),
        ("price", -1.0),
        ("price", inf),
        ("reliability", 1.01),
        ("reliability", -0.01),
        ("availability", nan),
    ],
)
def test_a_senseless_value_is_named_with_what_is_accepted(field: str, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Contract(**{field: value}).checked("client c7")
    assert (caught.value.source, caught.value.field) == ("client c7", field)
    assert "number" in caught.value.accepted


def test_a_subscriptions_id_can_be_read() -> None:
    assert subscription_id("b1", "c", "a/#") == "b1/c:a/#"


def test_the_tighter_deadline_holds_and_prices_multiply() -> None:
    asked = [(Contract(deadline_s=1.0, price=2.0), 1), (Contract(deadline_s=9.0, price=5.0), 3)]
    owed = destination("b2", Contract(deadline_s=3.0, price=10.0), asked)
    assert owed == Destination("b2", inf, (Group(1.0, 1, 20.0), Group(3.0, 3, 150.0)))


@pytest.mark.parametrize(
    ("publisher", "wishes", "expires_s"),
    [
        ({}, [{"deadline_s": 1.0}], inf),  # late is welcome
        ({}, [{"deadline_s": 1.0, "late": "drop"}], 1.0),
        ({}, [{"deadline_s": 1.0, "late": "drop"}, {"deadline_s": 2.0, "late": "drop"}], 2.0),
        ({}, [{"deadline_s": 1.0, "late": "drop"}, {"deadline_s": 0.5}], inf),
        ({"deadline_s": 0.5, "late": "drop"}, [{"deadline_s": 1.0}, {}], 0.5),
        ({"late": "drop"}, [{}], inf),  # without a deadline nothing is ever late
    ],
)
def test_a_copy_is_worth_carrying_until_the_last_taker_gives_up(
    publisher: dict[str, Any], wishes: list[dict[str, Any]], expires_s: float
) -> None:
    owed = destination("b2", Contract(**publisher), [(Contract(**wish), 1) for wish in wishes])
    assert owed.expires_s == expires_s


deadline = st.one_of(st.just(inf), st.sampled_from([0.5, 1.0, 2.0]))


some_wishes = st.lists(
    st.tuples(deadline, st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=8
)


@given(deadline, some_wishes)
def test_groups_account_for_every_subscription_and_all_money(
    deadline_s: float, wishes: list[tuple[float, int, int]]
) -> None:
    asked = [(Contract(d, float(price)), number) for d, price, number in wishes]
    owed = destination("b2", Contract(deadline_s), asked)
    assert sum(group.count for group in owed.groups) == sum(number for _, _, number in wishes)
    assert sum(group.price for group in owed.groups) == sum(p * number for _, p, number in wishes)
    deadlines = [group.deadline_s for group in owed.groups]
    assert deadlines == sorted({min(deadline_s, d) for d, _, _ in wishes})


@given(st.permutations([0.1, 0.2, 0.3, 1e9, 1e-9]))
def test_a_destination_is_worth_the_same_in_whichever_order_wishes_became_known(
    prices: list[float],
) -> None:
    owed = destination("b2", Contract(), [(Contract(price=price), 3) for price in prices])
    assert owed == destination("b2", Contract(), [(Contract(price=p), 3) for p in sorted(prices)])
