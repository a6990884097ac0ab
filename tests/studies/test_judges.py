"""Each kind of claim, on both sides of its border."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.studies.judges import JUDGES, Judged, Series

ONE: Series = {"dcrd": [(0.1, 0.967)]}
numbers = st.floats(-10, 10)


def judged(
    kind: str, *ours: float, expected: float = 0.0, tolerance: float = 0.0, **more: list[float]
) -> Judged:
    courses = {"dcrd": list(ours)} | more
    series = {s: list(enumerate(values, start=1)) for s, values in courses.items()}
    return JUDGES[kind](series, expected, tolerance)


@pytest.mark.parametrize(
    ("kind", "ours", "tolerance", "holds"),
    [
        ("near", 0.95, 0.05, True),
        ("near", 1.05, 0.05, True),
        ("near", 0.949, 0.05, False),
        ("near", 1.051, 0.05, False),
        ("at least", 1.0, 0.0, True),
        ("at least", 0.999, 0.0, False),
        ("at least", 0.999, 0.01, True),
        ("at most", 1.0, 0.0, True),
        ("at most", 1.001, 0.0, False),
        ("at most", 1.001, 0.01, True),
    ],
)
def test_a_number_is_compared_with_one(
    kind: str, ours: float, tolerance: float, holds: bool
) -> None:
    assert judged(kind, ours, expected=1.0, tolerance=tolerance) == (holds, ours, "dcrd at 1")


def test_the_worst_number_decides_and_is_ours() -> None:
    assert judged("near", 0.9, 1.3, 1.0, expected=1.0, tolerance=0.2) == (False, 1.3, "dcrd at 2")
    assert judged("at least", 3, 2, tree=[4, 1], expected=2) == (False, 1, "tree at 2")
    assert judged("at most", 3, 2, tree=[4, 1], expected=4) == (True, 4, "tree at 1")


@pytest.mark.parametrize(
    ("kind", "course", "tolerance", "holds"),
    [
        ("rising", [1, 2, 3], 0.0, True),
        ("rising", [1, 3, 2], 0.0, False),
        ("rising", [1, 3, 2], 1.0, True),
        ("rising", [2, 2, 2], 1.0, False),  # it does not rise, whatever is tolerated
        ("falling", [3, 2, 1], 0.0, True),
        ("falling", [3, 2, 2.1, 1], 0.0, False),
        ("falling", [3, 2, 2.1, 1], 0.2, True),
        ("falling", [1, 0.5, 1.2], 1.0, False),
        ("flat", [1, 1.2, 1.1], 0.2, True),
        ("flat", [1, 1.3, 1.1], 0.2, False),
        ("peaking", [1, 3, 2], 0.0, True),
        ("peaking", [1, 3, 2], 1.0, False),
        ("peaking", [1, 2, 3], 0.0, False),
        ("peaking", [3, 2, 1], 0.0, False),
        ("peaking", [1, 1, 1], 0.0, False),
    ],
)
def test_a_course_is_judged_as_a_whole(
    kind: str, course: list[float], tolerance: float, holds: bool
) -> None:
    assert judged(kind, *course, tolerance=tolerance).holds is holds


def test_of_several_courses_the_worst_is_told() -> None:
    found = judged("falling", 3, 2, 1, tree=[1, 2, 3])
    assert found == (False, 2, "tree, from 1 to 3")
    assert judged("flat", 1, 1, tree=[1, 2], tolerance=0.5) == (False, 1, "tree, spread")
    found = judged("peaking", 1, 9, 2, tree=[1, 3, 2.5])
    assert found == (True, -0.5, "tree, from its largest at 2 to 3")


def test_what_is_no_number_never_holds() -> None:
    for kind in ("near", "at least", "at most"):
        assert not judged(kind, 1.0, float("nan"), expected=1.0).holds


@given(numbers, numbers)
def test_a_number_near_another_is_at_least_and_at_most_it(ours: float, expected: float) -> None:
    found = {kind: judged(kind, ours, expected=expected, tolerance=0.5).holds for kind in JUDGES
             if kind in ("near", "at least", "at most")}  # fmt: skip
    assert found["near"] == (found["at least"] and found["at most"])
    assert found["at least"] or found["at most"]
