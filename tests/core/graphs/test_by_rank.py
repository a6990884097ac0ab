"""All paths without loops, one after another, against networkx."""

from itertools import islice

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.core.graphs.paths import by_rank, distance, k_shortest


@st.composite
def graphs(draw: st.DrawFn) -> nx.DiGraph:
    """Up to 7 brokers; the weights of the two directions of a link differ."""
    brokers = [f"b{n}" for n in range(1, draw(st.integers(2, 7)) + 1)]
    steps = [(a, b) for a in brokers for b in brokers if a != b]
    graph = nx.DiGraph()
    graph.add_nodes_from(brokers)
    for a, b in draw(st.lists(st.sampled_from(steps), unique=True, max_size=24)):
        graph.add_edge(a, b, weight=draw(st.integers(0, 6)) / 64)  # exact sums, many ties
    return graph


def ours(graph: nx.DiGraph) -> dict[str, dict[str, float]]:
    return {a: {b: graph[a][b]["weight"] for b in graph[a]} for a in graph}


@settings(max_examples=150)
@given(graphs())
def test_every_simple_path_comes_once_and_in_the_order_of_lengths(graph: nx.DiGraph) -> None:
    weights = ours(graph)
    found = list(by_rank(weights, "b1", "b2"))
    assert len(set(found)) == len(found)
    assert set(found) == set(map(tuple, nx.all_simple_paths(graph, "b1", "b2")))
    if found:
        theirs = nx.shortest_simple_paths(graph, "b1", "b2", "weight")
        lengths = [nx.path_weight(graph, path, "weight") for path in theirs]
        assert [distance(weights, path) for path in found] == lengths


@settings(max_examples=60)
@given(graphs(), st.integers(0, 9))
def test_the_k_shortest_are_the_first_k(graph: nx.DiGraph, k: int) -> None:
    weights = ours(graph)
    assert k_shortest(weights, "b1", "b2", k) == list(islice(by_rank(weights, "b1", "b2"), k))


def test_paths_are_sought_only_when_they_are_asked_for() -> None:
    """A complete graph of 40 brokers has more paths than anybody could wait for."""
    brokers = [f"b{n:02}" for n in range(40)]
    complete = {a: {b: 1.0 for b in brokers if b != a} for a in brokers}
    first = list(islice(by_rank(complete, "b00", "b01"), 3))
    assert first == [("b00", "b01"), ("b00", "b02", "b01"), ("b00", "b03", "b01")]


def test_the_source_is_its_own_only_path_and_nothing_leads_nowhere() -> None:
    graph = {"a": {"b": 1.0}, "b": {"a": 1.0}}
    assert list(by_rank(graph, "a", "a")) == [("a",)]
    assert list(by_rank(graph, "a", "c")) == []


def test_a_link_without_end_leads_nowhere() -> None:
    assert list(by_rank({"a": {"b": float("inf")}, "b": {}}, "a", "b")) == []
    with pytest.raises(StopIteration):
        next(by_rank({}, "a", "b"))
