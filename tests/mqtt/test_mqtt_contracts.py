from __future__ import annotations

import pytest

from tidings.core.contract import BEST_EFFORT, Contract
from tidings.core.errors import WireError
from tidings.mqtt.contracts import stated_contract
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
