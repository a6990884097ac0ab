"""The probability that some path works, against counting every state of every component."""

from collections.abc import Mapping
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.graphs.paths import BrokerPath
from tidings.core.graphs.reliability import Component, any_works, components_of, disjoint

BETWEEN = ["b", "c", "d"]
ratio = st.floats(0.0, 1.0)


@st.composite
def paths_from_a_to_z(draw: st.DrawFn, most_components: int = 8) -> list[BrokerPath]:
    """Some paths with at most so many components together, so that their states can be counted."""
    chosen: list[BrokerPath] = []
    for _ in range(draw(st.integers(0, 4))):
        between = draw(st.permutations(BETWEEN))[: draw(st.integers(0, 2))]
        path = ("a", *between, "z")
        if (
            len(frozenset[Component]().union(*map(components_of, [*chosen, path])))
            <= most_components
        ):
            chosen.append(path)
    return chosen


def counted(paths: list[BrokerPath], works: Mapping[Component, float]) -> float:
    """The definition: the sum over all states of all components in which some path is whole."""
    found, total = list(works), 0.0
    for states in product((True, False), repeat=len(found)):
        up = {component for component, is_up in zip(found, states, strict=True) if is_up}
        if any(components_of(path) <= up for path in paths):
            chance = 1.0
            for component in found:
                chance *= works[component] if component in up else 1.0 - works[component]
            total += chance
    return total


@given(paths_from_a_to_z(), st.data())
def test_any_works_equals_counting_all_states_of_all_parts(
    paths: list[BrokerPath], data: st.DataObject
) -> None:
    needed = sorted(frozenset[Component]().union(*map(components_of, paths)), key=sorted)
    works = {component: data.draw(ratio) for component in needed}
    assert any_works(paths, works.__getitem__) == pytest.approx(counted(paths, works), abs=1e-11)


@given(paths_from_a_to_z())
def test_the_order_of_paths_does_not_matter_and_repeating_one_adds_nothing(
    paths: list[BrokerPath],
) -> None:
    once = any_works(paths, lambda component: 0.9)
    assert any_works(paths[::-1], lambda component: 0.9) == pytest.approx(once)
    assert any_works([*paths, *paths[:1]], lambda component: 0.9) == pytest.approx(once)


def test_a_path_needs_its_links_and_the_brokers_between_its_ends() -> None:
    assert components_of(("a", "b", "z")) == {frozenset("ab"), frozenset("bz"), frozenset("b")}
    assert components_of(("a", "z")) == {frozenset("az")}
    assert any_works([("a", "b", "z")], lambda component: 0.5) == pytest.approx(0.125)


def test_paths_that_share_a_part_do_not_fail_independently() -> None:
    """By hand: both need a-b and b; beyond it, b-z or b-c, c and c-z."""
    shared = [("a", "b", "z"), ("a", "b", "c", "z")]
    beyond = 0.9 + 0.9**3 - 0.9**4
    assert any_works(shared, lambda component: 0.9) == pytest.approx(0.9 * 0.9 * beyond)


def test_what_is_certain_is_one_though_floats_say_a_little_less() -> None:
    assert 0.9 + 1.0 - 0.9 < 1.0
    works = {frozenset("az"): 0.9, frozenset("ab"): 1.0, frozenset("b"): 1.0, frozenset("bz"): 1.0}
    assert any_works([("a", "z"), ("a", "b", "z")], works.__getitem__) == 1.0


def test_without_a_path_nothing_works_and_with_perfect_parts_everything_does() -> None:
    assert any_works([], lambda component: 1.0) == 0.0
    assert any_works([("a", "b", "z"), ("a", "z")], lambda component: 1.0) == 1.0
    assert any_works([("a", "b", "z"), ("a", "z")], lambda component: 0.0) == 0.0


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


@given(paths_from_a_to_z(most_components=12))
def test_of_disjoint_paths_and_only_of_them_the_failures_are_independent(
    paths: list[BrokerPath],
) -> None:
    for one, other in combinations(paths, 2):
        alone = [any_works([path], lambda component: 0.5) for path in (one, other)]
        independent = 1 - (1 - alone[0]) * (1 - alone[1])
        together = any_works([one, other], lambda component: 0.5)
        assert disjoint(one, other) == (together == pytest.approx(independent))
