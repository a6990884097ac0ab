"""On random graphs our paths are as long as networkx's, and ranked as brute force ranks them."""

from itertools import islice, pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.core.graphs.paths import distance, k_shortest, shortest_from

BROKERS = ["b1", "b2", "b3", "b4", "b5", "b6", "b7"]
# Few different weights make many ties; free floats make none.
WEIGHTS = {
    "ties": st.sampled_from([0.0, 1.0, 2.0]),
    "floats": st.floats(min_value=0.0, max_value=1e3, allow_nan=False),
}


@st.composite
def graphs(draw, weights):
    brokers = BROKERS[: draw(st.integers(2, len(BROKERS)))]
    steps = [(a, b) for a in brokers for b in brokers if a != b]
    chosen = draw(st.lists(st.sampled_from(steps), unique=True, max_size=24))
    graph = {broker: {} for broker in brokers}
    for a, b in chosen:
        graph[a][b] = draw(weights)
    return graph


def in_networkx(graph):
    peer = nx.DiGraph()
    peer.add_nodes_from(graph)
    peer.add_weighted_edges_from((a, b, w) for a, near in graph.items() for b, w in near.items())
    return peer


def rank(graph, path):
    return (distance(graph, path), len(path), path)


@pytest.mark.parametrize("kind", WEIGHTS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_distances_equal_those_of_networkx(kind, data):
    graph = data.draw(graphs(WEIGHTS[kind]))
    expected = nx.single_source_dijkstra_path_length(in_networkx(graph), "b1")
    found = shortest_from(graph, "b1")
    assert found.distance == pytest.approx(expected)
    assert set(found.paths) == set(expected)


@pytest.mark.parametrize("kind", WEIGHTS)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), k=st.integers(1, 12))
def test_k_shortest_lengths_equal_those_of_networkx(kind, data, k):
    graph = data.draw(graphs(WEIGHTS[kind]))
    peer = in_networkx(graph)
    expected = []
    if nx.has_path(peer, "b1", "b2"):
        expected = list(islice(nx.shortest_simple_paths(peer, "b1", "b2", "weight"), k))
    found = k_shortest(graph, "b1", "b2", k)
    assert [distance(graph, p) for p in found] == pytest.approx(
        [distance(graph, p) for p in expected]
    )


@pytest.mark.parametrize("kind", WEIGHTS)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), k=st.integers(1, 12))
def test_k_shortest_are_distinct_loopless_and_sorted(kind, data, k):
    graph = data.draw(graphs(WEIGHTS[kind]))
    found = k_shortest(graph, "b1", "b2", k)
    assert len(set(found)) == len(found)
    for path in found:
        assert len(set(path)) == len(path)
        assert (path[0], path[-1]) == ("b1", "b2")
    lengths = [distance(graph, path) for path in found]
    assert lengths == sorted(lengths)


@settings(max_examples=150, deadline=None)
@given(graph=graphs(WEIGHTS["ties"]), k=st.integers(1, 12))
def test_the_order_is_that_of_ranking_all_simple_paths(graph, k):
    everything = map(tuple, nx.all_simple_paths(in_networkx(graph), "b1", "b2"))
    ranked = sorted(everything, key=lambda path: rank(graph, path))
    assert k_shortest(graph, "b1", "b2", k) == ranked[:k]
    assert shortest_from(graph, "b1").path_to("b2") == (ranked[0] if ranked else ())


@settings(max_examples=100, deadline=None)
@given(graph=graphs(WEIGHTS["ties"]), then=graphs(WEIGHTS["ties"]))
def test_a_second_weight_ranks_before_hops_and_names(graph, then):
    second = {a: {b: then.get(a, {}).get(b, 1.0) for b in near} for a, near in graph.items()}
    everything = map(tuple, nx.all_simple_paths(in_networkx(graph), "b1", "b2"))
    ranked = sorted(everything, key=lambda p: (distance(graph, p), distance(second, p), len(p), p))
    assert k_shortest(graph, "b1", "b2", 5, second) == ranked[:5]
    assert shortest_from(graph, "b1", second).path_to("b2") == (ranked[0] if ranked else ())


@settings(max_examples=100, deadline=None)
@given(graph=graphs(WEIGHTS["floats"]))
def test_the_rest_of_a_best_path_is_the_best_path_of_the_rest(graph):
    best_from = {broker: shortest_from(graph, broker) for broker in graph}
    for found in best_from.values():
        for target, path in found.paths.items():
            for here, onward in pairwise(path):
                assert best_from[here].next_hop(target) == onward
