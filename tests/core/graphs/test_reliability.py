"""The probability that some path works, against counting every state of every part."""

from collections.abc import Mapping
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.graphs.paths import BrokerPath
from tidings.core.graphs.reliability import Part, any_works, disjoint, parts

BETWEEN = ["b", "c", "d"]
ratio = st.floats(0.0, 1.0)


@st.composite
def paths_from_a_to_z(draw: st.DrawFn, most_parts: int = 8) -> list[BrokerPath]:
    """Some paths with at most so many parts together, so that their states can be counted."""
    chosen: list[BrokerPath] = []
    for _ in range(draw(st.integers(0, 4))):
        between = draw(st.permutations(BETWEEN))[: draw(st.integers(0, 2))]
        path = ("a", *between, "z")
        if len(frozenset[Part]().union(*map(parts, [*chosen, path]))) <= most_parts:
            chosen.append(path)
    return chosen


def counted(paths: list[BrokerPath], works: Mapping[Part, float]) -> float:
    """The definition: the sum over all states of all parts in which some path is whole."""
    found, total = list(works), 0.0
    for states in product((True, False), repeat=len(found)):
        up = {part for part, is_up in zip(found, states, strict=True) if is_up}
        if any(parts(path) <= up for path in paths):
            chance = 1.0
            for part in found:
                chance *= works[part] if part in up else 1.0 - works[part]
            total += chance
    return total


@given(paths_from_a_to_z(), st.data())
def test_any_works_equals_counting_all_states_of_all_parts(
    paths: list[BrokerPath], data: st.DataObject
) -> None:
    needed = sorted(frozenset[Part]().union(*map(parts, paths)), key=sorted)
    works = {part: data.draw(ratio) for part in needed}
    assert any_works(paths, works.__getitem__) == pytest.approx(counted(paths, works), abs=1e-11)


@given(paths_from_a_to_z())
def test_the_order_of_paths_does_not_matter_and_repeating_one_adds_nothing(
    paths: list[BrokerPath],
) -> None:
    once = any_works(paths, lambda part: 0.9)
    assert any_works(paths[::-1], lambda part: 0.9) == pytest.approx(once)
    assert any_works([*paths, *paths[:1]], lambda part: 0.9) == pytest.approx(once)


def test_a_path_needs_its_links_and_the_brokers_between_its_ends() -> None:
    assert parts(("a", "b", "z")) == {frozenset("ab"), frozenset("bz"), frozenset("b")}
    assert parts(("a", "z")) == {frozenset("az")}
    assert any_works([("a", "b", "z")], lambda part: 0.5) == pytest.approx(0.125)


def test_paths_that_share_a_part_do_not_fail_independently() -> None:
    """By hand: both need a-b and b; beyond it, b-z or b-c, c and c-z."""
    shared = [("a", "b", "z"), ("a", "b", "c", "z")]
    beyond = 0.9 + 0.9**3 - 0.9**4
    assert any_works(shared, lambda part: 0.9) == pytest.approx(0.9 * 0.9 * beyond)


def test_what_is_certain_is_one_though_floats_say_a_little_less() -> None:
    assert 0.9 + 1.0 - 0.9 < 1.0
    works = {frozenset("az"): 0.9, frozenset("ab"): 1.0, frozenset("b"): 1.0, frozenset("bz"): 1.0}
    assert any_works([("a", "z"), ("a", "b", "z")], works.__getitem__) == 1.0


def test_without_a_path_nothing_works_and_with_perfect_parts_everything_does() -> None:
    assert any_works([], lambda part: 1.0) == 0.0
    assert any_works([("a", "b", "z"), ("a", "z")], lambda part: 1.0) == 1.0
    assert any_works([("a", "b", "z"), ("a", "z")], lambda part: 0.0) == 0.0


@pytest.mark.parametrize(
    ("path", "other", "apart"),
    [
        ("abz", "acz", True),
        ("abz", "az", True),
        ("abz", "abz", False),
        ("abz", "acbz", False),  # a common broker, and the link b-z
        ("abcz", "acbz", False),  # the same link in the other direction, the same brokers
        ("abcz", "adcz", False),
        ("abz", "acbdz", False),  # a common broker and no common link
    ],
)
def test_paths_are_disjoint_if_no_link_and_no_broker_between_the_ends_is_common(
    path: str, other: str, apart: bool
) -> None:
    assert disjoint(path, other) == disjoint(other, path) == apart


@given(paths_from_a_to_z(most_parts=12))
def test_of_disjoint_paths_and_only_of_them_the_failures_are_independent(
    paths: list[BrokerPath],
) -> None:
    for one, other in combinations(paths, 2):
        alone = [any_works([path], lambda part: 0.5) for path in (one, other)]
        independent = 1 - (1 - alone[0]) * (1 - alone[1])
        together = any_works([one, other], lambda part: 0.5)
        assert disjoint(one, other) == (together == pytest.approx(independent))
