"""Which of the ways: the chosen paths against all simple paths that networkx finds."""

from collections.abc import Mapping
from itertools import combinations, islice
from math import inf

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.views import a_view

from tidings.core.graphs.paths import BrokerPath, Graph, by_rank, distance
from tidings.core.graphs.reliability import Component, any_works, components_of, disjoint
from tidings.core.links.estimates import LinkEstimate
from tidings.routing.base import View
from tidings.routing.harmony.availability import alike, measured
from tidings.routing.harmony.candidates import MOST_CHOICES, Candidates
from tidings.routing.harmony.selection import DIGITS, delay_of, enough, pair

ALL = 1000  # choices: more than there are paths among six brokers
deadlines = st.one_of(st.just(inf), st.integers(1, 40).map(lambda n: n / 64))


@st.composite
def networks(draw: st.DrawFn) -> nx.Graph:
    """Up to six brokers, delays with exact sums, and an availability of every component."""
    size, density = draw(st.integers(2, 6)), draw(st.floats(0.4, 1.0))
    graph = nx.gnp_random_graph(size, density, seed=draw(st.integers(0, 10**6)))
    graph = nx.relabel_nodes(graph, lambda n: f"b{n + 1}")
    for a, b in graph.edges:
        graph[a][b]["weight"] = draw(st.integers(1, 12)) / 64
    return graph


def delays(graph: nx.Graph) -> dict[str, dict[str, float]]:
    return {a: {b: graph[a][b]["weight"] for b in graph[a]} for a in graph}


def all_paths(graph: nx.Graph) -> list[BrokerPath]:
    """In the order of delay, hops and names."""
    found = [tuple(path) for path in nx.all_simple_paths(graph, "b1", "b2")]
    return sorted(found, key=lambda path: (nx.path_weight(graph, path, "weight"), len(path), path))


def in_time(graph: nx.Graph, deadline_s: float) -> list[BrokerPath]:
    paths = all_paths(graph)
    return [path for path in paths if nx.path_weight(graph, path, "weight") <= deadline_s]


def an_availability(graph: nx.Graph, data: st.DataObject) -> dict[Component, float]:
    needed = [*map(frozenset, graph.edges), *(frozenset((broker,)) for broker in graph)]
    return {
        component: data.draw(st.sampled_from([0.0, 0.5, 0.9, 0.99, 0.999, 1.0]))
        for component in needed
    }


def candidates(
    graph: Graph, source: str, target: str, deadline_s: float, choices: int
) -> tuple[BrokerPath, ...]:
    return Candidates(graph, source, target, choices).within(deadline_s)


# ---- two


@settings(max_examples=100)
@given(networks(), deadlines, st.sampled_from([2, 3, 10, ALL]), st.data())
def test_the_pair_is_disjoint_whenever_a_disjoint_pair_meets_the_deadline(
    graph: nx.Graph, deadline_s: float, choices: int, data: st.DataObject
) -> None:
    works = an_availability(graph, data)
    chosen = pair(candidates(delays(graph), "b1", "b2", deadline_s, choices), works.__getitem__)
    good = in_time(graph, deadline_s)
    if any(disjoint(*two) for two in combinations(good, 2)):
        assert disjoint(*chosen)
        assert set(chosen) <= set(good)


@settings(max_examples=100)
@given(networks(), deadlines, st.sampled_from([2, 3, 10, ALL]), st.data())
def test_no_path_over_the_deadline_is_chosen_while_one_meets_it(
    graph: nx.Graph, deadline_s: float, choices: int, data: st.DataObject
) -> None:
    works = an_availability(graph, data)
    ranked = candidates(delays(graph), "b1", "b2", deadline_s, choices)
    several = enough(ranked, works.__getitem__, 0.9999, 4)
    for chosen in (pair(ranked, works.__getitem__), several):
        good, everything = in_time(graph, deadline_s), all_paths(graph)
        assert set(chosen) <= set(good or everything)
        assert bool(chosen) == bool(everything)
        assert len(set(chosen)) == len(chosen)


@settings(max_examples=80)
@given(networks(), deadlines, st.data())
def test_the_pair_is_the_most_available_of_the_disjoint_and_then_the_shortest(
    graph: nx.Graph, deadline_s: float, data: st.DataObject
) -> None:
    works = an_availability(graph, data)
    good = in_time(graph, deadline_s) or all_paths(graph)
    assume(len(good) > 1)
    pairs = list(combinations(good, 2))
    best = [two for two in pairs if disjoint(*two)] or pairs
    most = max(round(any_works(two, works.__getitem__), DIGITS) for two in best)
    expected = next(two for two in best if round(any_works(two, works.__getitem__), DIGITS) == most)
    chosen = pair(candidates(delays(graph), "b1", "b2", deadline_s, ALL), works.__getitem__)
    assert chosen == expected


@settings(max_examples=40)
@given(networks(), st.lists(deadlines, min_size=2, max_size=6), st.sampled_from([2, 3, 10]))
def test_what_was_found_for_one_deadline_does_not_change_what_is_for_another(
    graph: nx.Graph, several_s: list[float], choices: int
) -> None:
    shared = Candidates(delays(graph), "b1", "b2", choices)
    for deadline_s in several_s:
        alone = candidates(delays(graph), "b1", "b2", deadline_s, choices)
        assert shared.within(deadline_s) == alone


def test_the_only_path_is_taken_alone_and_of_none_there_is_none() -> None:
    only = ("b1", "b2")
    assert pair([only], alike) == (only,)
    assert pair([], alike) == ()
    assert candidates({"b1": {}}, "b1", "b2", inf, 10) == ()


def test_a_path_that_is_late_does_not_become_the_second_of_one_that_is_not() -> None:
    graph = {"b1": {"b2": 0.01, "b3": 0.05}, "b3": {"b2": 0.05}}
    assert candidates(graph, "b1", "b2", 0.02, 10) == (("b1", "b2"),)
    assert len(candidates(graph, "b1", "b2", 0.2, 10)) == 2
    assert len(candidates(graph, "b1", "b2", 0.001, 10)) == 2  # none meets it: all are a choice


@pytest.mark.parametrize("choices", [2, 10])
def test_more_than_the_first_few_are_looked_at_until_two_are_disjoint(choices: int) -> None:
    """Thirty detours share the first link; the only other way is the longest of all."""
    graph: dict[str, dict[str, float]] = {"b1": {"x": 1.0, "b2": 99.0}, "x": {}}
    for n in range(30):
        graph["x"][f"d{n:02}"], graph[f"d{n:02}"] = 1.0, {"b2": 1.0}
    chosen = pair(candidates(graph, "b1", "b2", inf, choices), alike)
    assert ("b1", "b2") in chosen
    assert disjoint(*chosen)


def test_a_disjoint_pair_is_found_behind_more_paths_than_anybody_looks_at() -> None:
    """A mesh near the target has hundreds of paths that all begin with the same link."""
    mesh = [f"x{n}" for n in range(7)]
    graph: dict[str, dict[str, float]] = {"b1": {"x0": 0.001, "y": 0.05}, "y": {"b2": 0.05}}
    for name in mesh:
        graph[name] = {other: 0.001 for other in (*mesh, "b2") if other != name}
    assert len(list(islice(by_rank(graph, "b1", "b2"), MOST_CHOICES + 1))) > MOST_CHOICES
    chosen = pair(candidates(graph, "b1", "b2", 0.2, 10), alike)
    assert chosen == (("b1", "x0", "b2"), ("b1", "y", "b2"))


def test_without_a_disjoint_pair_only_the_first_few_are_a_choice() -> None:
    graph: dict[str, dict[str, float]] = {"b1": {"x": 1.0}, "x": {}}
    for n in range(30):
        graph["x"][f"d{n:02}"], graph[f"d{n:02}"] = 1.0, {"b2": 1.0}
    assert len(candidates(graph, "b1", "b2", inf, 10)) == 10


def test_a_difference_below_a_thousandth_is_none_and_the_shorter_paths_win() -> None:
    ranked = [("b1", "a", "b2"), ("b1", "b", "b2"), ("b1", "c", "b2")]

    def works(component: Component) -> float:
        return 0.9990 if "b" in component else 0.9991

    assert pair(ranked, works) == tuple(ranked[:2])
    assert pair(ranked, lambda component: 0.5 if "b" in component else 0.9) == (
        ranked[0],
        ranked[2],
    )


# ---- as many as needed


def greedily(
    ranked: list[BrokerPath], works: Mapping[Component, float], level: float, most: int
) -> list[BrokerPath]:
    """The rule in other words, with the paths' availability counted state by state."""
    chosen = ranked[:1]
    while chosen and counted(chosen, works) < level - 1e-12 and len(chosen) < most:
        rest = [path for path in ranked if path not in chosen]
        gains = [counted([*chosen, path], works) for path in rest]
        if not rest or max(gains) <= counted(chosen, works) + 1e-12:
            break
        chosen = [*chosen, rest[gains.index(max(gains))]]
    return chosen


def counted(paths: list[BrokerPath], works: Mapping[Component, float]) -> float:
    """The probability that some path works: condition on one component after the other."""
    needed = [components_of(path) for path in paths]
    return _given([set(each) for each in needed], dict(works))


def _given(needed: list[set[Component]], works: dict[Component, float]) -> float:
    if any(not each for each in needed):
        return 1.0
    if not needed:
        return 0.0
    component = min(set().union(*needed), key=sorted)
    up = _given([each - {component} for each in needed], works)
    down = _given([each for each in needed if component not in each], works)
    return works[component] * up + (1 - works[component]) * down


@settings(max_examples=100)
@given(
    networks(), st.sampled_from([0.1, 0.5, 0.9, 0.99, 0.9999, 1.0]), st.integers(1, 4), st.data()
)
def test_paths_are_added_until_the_level_is_reached_and_not_one_more(
    graph: nx.Graph, level: float, most: int, data: st.DataObject
) -> None:
    needed = an_availability(graph, data)
    ranked = all_paths(graph)[:10]
    chosen = list(enough(ranked, needed.__getitem__, level, most))
    by_rule = greedily(ranked, needed, level, most)
    assert counted(chosen, needed) == pytest.approx(counted(by_rule, needed))
    assert len(chosen) == len(by_rule) <= most
    assert chosen[:1] == ranked[:1]
    if ranked and counted(ranked[:1], needed) >= level + 1e-12:
        assert chosen == ranked[:1]


def test_one_path_suffices_where_one_is_available_enough() -> None:
    ranked = [("b1", "b2"), ("b1", "a", "b2"), ("b1", "c", "b2")]
    assert enough(ranked, lambda component: 0.99, 0.98, 4) == (ranked[0],)
    assert enough(ranked, lambda component: 0.9, 0.95, 4) == tuple(ranked[:2])
    assert enough(ranked, lambda component: 0.9, 0.99, 4) == tuple(ranked)
    assert enough(ranked, lambda component: 0.9, 0.99, 2) == tuple(ranked[:2])
    assert enough([], lambda component: 0.9, 0.99, 4) == ()


def test_a_certainty_is_enough_for_any_level() -> None:
    ranked = [("b1", "b2"), ("b1", "a", "b2"), ("b1", "c", "b2")]
    assert enough(
        ranked, lambda component: 0.9 if "b1" in component and "b2" in component else 1.0, 1.0, 4
    ) == (
        ranked[0],
        ranked[1],
    )


def test_what_does_not_help_is_not_added() -> None:
    ranked = [("b1", "b2"), ("b1", "dead", "b2")]
    assert enough(ranked, lambda component: 0.0 if "dead" in component else 0.9, 0.99, 4) == (
        ranked[0],
    )


# ---- what the monitors say


def a_network(availability: Mapping[tuple[str, str], float]) -> View:
    view, links = View("b1"), dict[str, dict[str, LinkEstimate]]()
    for (a, b), ratio in availability.items():
        links.setdefault(a, {})[b] = LinkEstimate(0.01, availability=ratio)
    view.links = links
    return view


def test_a_link_is_as_available_as_it_was_seen_and_a_broker_as_the_best_link_to_it() -> None:
    """Who failed, b3 or the links to it, nobody has seen; so none of them is a certainty."""
    works = measured(a_network({("b1", "b3"): 0.45, ("b2", "b3"): 0.9}))
    assert works(frozenset({"b3"})) == pytest.approx(0.9)
    assert works(frozenset({"b2", "b3"})) == pytest.approx(0.9)
    assert works(frozenset({"b1", "b3"})) == pytest.approx(0.45)


def test_the_only_link_to_a_destination_is_no_certainty() -> None:
    works = measured(a_network({("b1", "b2"): 0.5, ("b2", "b1"): 0.5}))
    assert any_works([("b1", "b2")], works) == pytest.approx(0.5)


@settings(max_examples=60)
@given(networks(), st.data())
def test_paths_are_never_believed_to_work_more_often_than_they_do(
    graph: nx.Graph, data: st.DataObject
) -> None:
    """Whether links fail or the brokers between them: a monitor sees both as one."""
    truth = an_availability(graph, data)
    seen = {
        (a, b): truth[frozenset((a, b))] * truth[frozenset((b,))]
        for ends in graph.edges
        for a, b in (ends, ends[::-1])
    }
    chosen = all_paths(graph)[:3]
    believed = any_works(chosen, measured(a_network(seen)))
    assert believed <= any_works(chosen, truth.__getitem__) + 1e-9


def test_of_two_ends_that_see_a_link_differently_the_worse_is_believed() -> None:
    works = measured(a_network({("b1", "b2"): 0.8, ("b2", "b1"): 0.6}))
    assert works(frozenset({"b1", "b2"})) == pytest.approx(0.6)


def test_a_broker_of_which_nothing_is_known_is_taken_to_work_and_an_unknown_link_is_not() -> None:
    works = measured(a_network({("b1", "b2"): 0.8}))
    assert works(frozenset({"stranger"})) == 1.0
    assert works(frozenset({"b1", "stranger"})) == 0.0
    assert measured(View("b1"))(frozenset({"b1", "b2"})) == 0.0


def test_what_never_worked_is_not_expected_to() -> None:
    works = measured(a_network({("b1", "b2"): 0.0, ("b2", "b1"): 0.0}))
    assert works(frozenset({"b2"})) == 0.0
    assert works(frozenset({"b1", "b2"})) == 0.0


ratios = st.floats(0.0, 1.0)
ends = st.tuples(*[st.sampled_from(["b1", "b2", "b3"])] * 2).filter(lambda two: two[0] != two[1])


@given(st.dictionaries(ends, ratios))
def test_whatever_is_reported_the_chance_of_every_part_is_one(
    availability: dict[tuple[str, str], float],
) -> None:
    works = measured(a_network(availability))
    for component in [frozenset(two) for two in combinations(["b1", "b2", "b3", "b4"], 2)]:
        assert 0.0 <= works(component) <= 1.0
    for (a, b), ratio in availability.items():
        assert works(frozenset({a, b})) <= ratio  # never believed to be better than was seen


def test_the_delay_of_a_path_over_a_link_that_is_gone_is_endless() -> None:
    graph: Graph = {a: {b: e.delay_s for b, e in near.items()} for a, near in RING.links.items()}
    assert delay_of(graph, ("b1", "b2", "b3")) == distance(graph, ("b1", "b2", "b3"))
    assert delay_of(graph, ("b1", "b3")) == delay_of(graph, ("b9", "b1")) == inf


RING = a_view("b1", ("b1", "b2", 0.01), ("b2", "b3", 0.01), ("b1", "b4", 0.02), ("b4", "b3", 0.02))
