"""A misspelt name is met with the one that was meant; a name of its own is left alone."""

import pytest

from tidings.core.near_names import slip_of, suggestion

STRATEGIES = ["balanced", "best-path", "d-tree", "dcrd", "flooding", "r-tree"]
PROPERTIES = ["availability", "deadline-ms", "durable", "late", "price", "strategy", "where"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("dtree", "d-tree"),
        ("R_Tree", "r-tree"),
        ("bestpath", "best-path"),
        ("drcd", "dcrd"),
        ("flood", "flooding"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(name: str, meant: str) -> None:
    assert suggestion(name, STRATEGIES) == f" Did you mean '{meant}'?"


@pytest.mark.parametrize("name", ["", "magic", "-", "x" * 100])
def test_nothing_is_suggested_where_nothing_is_near(name: str) -> None:
    assert suggestion(name, STRATEGIES) == ""


def test_nothing_is_suggested_where_nothing_is_known() -> None:
    assert suggestion("dcrd", []) == ""


def test_the_order_of_the_known_names_does_not_matter() -> None:
    for name in ("tree", "x-tree"):
        assert suggestion(name, ["d-tree", "r-tree"]) == suggestion(name, {"r-tree", "d-tree"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("deadlinems", "deadline-ms"),
        ("deadline_ms", "deadline-ms"),
        ("Deadline-Ms", "deadline-ms"),
        ("deadline", "deadline-ms"),
        ("dealdine-ms", "deadline-ms"),
        ("prise", "price"),
        ("wehre", "where"),
        ("Late", "late"),
        ("durabel", "durable"),
        ("stategy", "strategy"),
    ],
)
def test_a_name_with_hardly_a_wrong_letter_is_a_slip(name: str, meant: str) -> None:
    assert slip_of(name, PROPERTIES) == meant


@pytest.mark.parametrize(
    "name", ["lat", "date", "rate", "plate", "priority", "availability-zone", "unit", "", "late"]
)
def test_a_name_of_its_own_is_no_slip(name: str) -> None:
    assert slip_of(name, PROPERTIES) is None
