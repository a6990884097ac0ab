from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.contract import BEST_EFFORT, Contract
from tidings.core.errors import WireError
from tidings.mqtt.contracts import STATEMENTS, stated_contract, user_properties_of
from tidings.mqtt.reasons import ReasonCode


def test_a_client_that_states_nothing_gets_the_default() -> None:
    default = Contract(deadline_s=3.0)
    assert stated_contract((), None, default) == (default, None)
    assert stated_contract((("height", "-5"), ("Price", "x")), None, default) == (default, None)


def test_every_clause_can_be_stated() -> None:
    stated = (
        ("deadline-ms", "250"),
        ("kind", "jet"),
        ("price", "2.5"),
        ("reliability", "0.99"),
        ("availability", "1"),
        ("late", "drop"),
        ("durable", "true"),
        ("strategy", "dcrd"),
        ("where", "height < 3000"),
    )
    contract = Contract(0.25, 2.5, 0.99, 1.0, "drop", True, "dcrd")
    assert stated_contract(stated, None, BEST_EFFORT) == (contract, "height < 3000")


def test_what_is_not_stated_stays_as_the_default_has_it() -> None:
    default = Contract(deadline_s=3.0, price=7.0, late="drop")
    contract, _ = stated_contract((("price", "0"),), None, default)
    assert contract == Contract(deadline_s=3.0, price=0.0, late="drop")


def test_message_expiry_is_the_deadline_of_a_message_that_states_none() -> None:
    expiring = Contract(deadline_s=60.0, late="drop")
    assert stated_contract((), 60, BEST_EFFORT) == (expiring, None)
    assert stated_contract((("late", "deliver"),), 60, BEST_EFFORT) == (expiring, None)
    stated, _ = stated_contract((("deadline-ms", "5e2"),), 60, BEST_EFFORT)
    assert stated == Contract(deadline_s=0.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("deadline-ms", bad)
            for bad in ("", "0", "-1", "nan", "inf", "1e999", "1_0", " 1", "\u0661")
        ),
        *(("price", bad) for bad in ("-0.1", "NaN", "free", "infinity", "+", ".")),
        *(("reliability", bad) for bad in ("1.01", "-0", "99%")),
        *(("availability", bad) for bad in ("2", "high")),
        ("late", "Deliver"),
        ("durable", "yes"),
        ("strategy", ""),
        ("where", ""),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(WireError) as caught:
        stated_contract(((name, value),), None, BEST_EFFORT)
    assert caught.value.code == ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
    assert f"user property {name} is {value!r}, but accepted is: " in caught.value.problem


def test_a_long_bad_value_is_not_repeated_in_full() -> None:
    with pytest.raises(WireError, match=r"is 'x{80}\.\.\.', but accepted is"):
        stated_contract((("price", "x" * 60_000),), None, BEST_EFFORT)


@pytest.mark.parametrize("name", ["deadline-ms", "where"])
def test_a_clause_stated_twice_is_refused(name: str) -> None:
    with pytest.raises(WireError, match=f"user property {name} is stated twice"):
        stated_contract(((name, "1"), (name, "1")), None, BEST_EFFORT)


NAMES = st.just("") | st.text(min_size=1)
RATIOS = st.floats(0.0, 1.0)
CONTRACTS = st.builds(
    Contract,
    st.just(inf) | st.floats(0.0, 1e300, exclude_min=True),  # in ms it has to be a float as well
    st.floats(0.0, allow_infinity=False),
    RATIOS,
    RATIOS,
    st.sampled_from(["deliver", "drop"]),
    st.booleans(),
    NAMES,
    NAMES,
)


@given(CONTRACTS, NAMES)
def test_a_contract_stated_in_user_properties_is_read_as_the_same(
    contract: Contract, where: str
) -> None:
    stated = user_properties_of(contract, where)
    assert stated_contract(stated, None, BEST_EFFORT) == (contract, where or None)


def test_best_effort_is_stated_by_saying_nothing() -> None:
    assert user_properties_of(BEST_EFFORT) == ()


def test_every_field_of_a_contract_has_a_user_property() -> None:
    stated = [statement.field for statement in STATEMENTS.values()]
    assert stated == [*Contract.__struct_fields__, "where"]


def test_a_deadline_is_written_in_plain_milliseconds() -> None:
    assert user_properties_of(Contract(deadline_s=0.25)) == (("deadline-ms", "250"),)
    assert user_properties_of(Contract(deadline_s=2e-05)) == (("deadline-ms", "0.02"),)
