"""The pair of disjoint paths of least total weight, against all pairs there are."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.core.graphs.disjoint import disjoint_pair
from tidings.core.graphs.paths import distance
from tidings.core.graphs.reliability import disjoint

BROKERS = [f"b{n}" for n in range(6)]
LINKS = list(combinations(BROKERS, 2))


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(LINKS), st.integers(0, 9), min_size=1))
def test_no_other_disjoint_pair_is_shorter_in_all(weights: dict[tuple[str, str], int]) -> None:
    graph: dict[str, dict[str, float]] = {broker: {} for broker in BROKERS}
    for (a, b), weight in weights.items():
        graph[a][b] = graph[b][a] = float(weight)
    network = nx.Graph(list(weights))
    paths = (
        [tuple(path) for path in nx.all_simple_paths(network, "b0", "b1")]
        if {"b0", "b1"} <= set(network)
        else []
    )
    totals = [
        distance(graph, one) + distance(graph, other)
        for one, other in combinations(paths, 2)
        if disjoint(one, other)
    ]
    found = disjoint_pair(graph, "b0", "b1")
    if not totals:
        assert found == ()
        return
    assert len(found) == 2
    assert disjoint(*found)
    assert sum(distance(graph, path) for path in found) == min(totals)


@pytest.mark.parametrize("target", ["b0", "b9"])
def test_to_itself_and_to_nowhere_there_are_none(target: str) -> None:
    assert disjoint_pair({"b0": {"b1": 1.0}, "b1": {"b0": 1.0}}, "b0", target) == ()


def test_links_in_one_direction_only_are_taken_in_that_direction() -> None:
    graph = {"s": {"a": 1.0, "b": 5.0}, "a": {"t": 1.0}, "b": {"t": 5.0}, "t": {"b": 1.0}}
    assert disjoint_pair(graph, "s", "t") == (("s", "a", "t"), ("s", "b", "t"))
