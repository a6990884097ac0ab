"""Shortest paths on small graphs whose answers can be read off, and the laws of the total order."""

from itertools import permutations

import pytest

from tidings.core.graphs.paths import distance, k_shortest, overlap, shortest_from
from tidings.core.rng import Draws
from tidings.core.topology import from_gml, full_mesh, random_degree

# Two ways of weight 3 from a to d (over b and over c), and one of weight 4 in a single hop.
DIAMOND = {
    "a": {"b": 1.0, "c": 2.0, "d": 4.0},
    "b": {"a": 1.0, "d": 2.0},
    "c": {"a": 2.0, "d": 1.0},
    "d": {"a": 4.0, "b": 2.0, "c": 1.0},
}


def ones(graph):
    return {a: dict.fromkeys(near, 1.0) for a, near in graph.items()}


def follow_next_hops(graph, source, target, then=None):
    path = [source]
    while path[-1] != target:
        path.append(shortest_from(graph, path[-1], then).next_hop(target))
        assert len(path) <= len(graph), f"a loop: {path}"
    return tuple(path)


def test_the_source_reaches_itself_at_no_cost_and_without_a_next_hop():
    found = shortest_from(DIAMOND, "a")
    assert found.path_to("a") == ("a",)
    assert found.distance["a"] == 0.0
    assert found.next_hop("a") is None


def test_of_equal_paths_the_first_in_the_order_of_names_is_taken():
    assert shortest_from(DIAMOND, "a").path_to("d") == ("a", "b", "d")


def test_of_equal_paths_the_one_with_fewer_hops_is_taken():
    graph = {"a": {"b": 1.0, "z": 3.0}, "b": {"c": 1.0}, "c": {"z": 1.0}, "z": {}}
    assert shortest_from(graph, "a").path_to("z") == ("a", "z")


def test_a_second_graph_decides_between_paths_the_first_holds_to_be_equal():
    then = {a: {b: 0.0 if "c" in (a, b) else 1.0 for b in near} for a, near in DIAMOND.items()}
    assert shortest_from(DIAMOND, "a", then).path_to("d") == ("a", "c", "d")


def test_fewest_hops_then_least_delay():
    delays = {
        "a": {"b": 9.0, "c": 1.0, "e": 1.0},
        "b": {"d": 9.0},
        "c": {"d": 2.0},
        "d": {},
        "e": {"f": 0.1},
        "f": {"d": 0.1},
    }
    assert shortest_from(ones(delays), "a", delays).path_to("d") == ("a", "c", "d")
    assert shortest_from(delays, "a").path_to("d") == ("a", "e", "f", "d")


def test_weights_are_directed():
    graph = {"a": {"b": 1.0}, "b": {"a": 5.0}}
    assert shortest_from(graph, "a").distance["b"] == 1.0
    assert shortest_from(graph, "b").distance["a"] == 5.0


def test_what_is_out_of_reach_has_no_path_no_hop_and_no_distance():
    found = shortest_from({"a": {"b": 1.0}, "b": {}, "c": {"a": 1.0}}, "a")
    assert found.path_to("c") == ()
    assert found.next_hop("c") is None
    assert "c" not in found.distance


def test_a_step_of_infinite_weight_does_not_exist():
    found = shortest_from({"a": {"b": float("inf"), "c": 1.0}, "b": {}, "c": {}}, "a")
    assert set(found.distance) == {"a", "c"}


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_a_negative_or_undefined_weight_is_refused(weight):
    with pytest.raises(ValueError, match="accepted is"):
        shortest_from({"a": {"b": weight}, "b": {}}, "a")


def test_sums_do_not_depend_on_where_one_starts_to_add():
    # In floats (0.1 + 0.2) + 0.3 > 0.1 + (0.2 + 0.3), so that ends of one path would disagree.
    line = {"a": {"b": 0.1}, "b": {"a": 0.1, "c": 0.2}, "c": {"b": 0.2, "d": 0.3}, "d": {"c": 0.3}}
    assert shortest_from(line, "a").distance["d"] == shortest_from(line, "d").distance["a"]


def test_the_order_of_insertion_does_not_matter():
    expected = shortest_from(DIAMOND, "d").paths
    for order in permutations(DIAMOND):
        shuffled = {a: {b: DIAMOND[a][b] for b in order if b in DIAMOND[a]} for a in order}
        assert shortest_from(shuffled, "d").paths == expected


@pytest.mark.parametrize("then", ["nothing", "delay"])
def test_following_next_hops_takes_exactly_the_best_path(then):
    overlay = random_degree(16, 4, Draws(3))
    coarse = {
        a: {b: round(s * 100) / 100 for b, s in near.items()} for a, near in overlay.delays.items()
    }
    second = overlay.delays if then == "delay" else None
    for source in overlay.brokers:
        best = shortest_from(coarse, source, second)
        for target in overlay.brokers:
            assert follow_next_hops(coarse, source, target, second) == best.path_to(target)


def test_next_hops_never_loop_over_links_without_weight():
    mesh = full_mesh(6, Draws(1)).delays
    free = {a: dict.fromkeys(near, 0.0) for a, near in mesh.items()}
    for source, target in permutations(free, 2):
        assert follow_next_hops(free, source, target) == (source, target)


def test_k_shortest_gives_the_paths_in_the_total_order():
    assert k_shortest(DIAMOND, "a", "d", 9) == [
        ("a", "b", "d"),
        ("a", "c", "d"),
        ("a", "d"),
    ]


def test_k_shortest_gives_no_more_than_asked_and_nothing_out_of_reach():
    assert k_shortest(DIAMOND, "a", "d", 1) == [("a", "b", "d")]
    assert k_shortest(DIAMOND, "a", "d", 0) == []
    assert k_shortest({"a": {}, "b": {}}, "a", "b", 3) == []
    assert k_shortest(DIAMOND, "a", "a", 3) == [("a",)]


def test_overlap_counts_shared_links_in_either_direction():
    assert overlap(("a", "b", "c"), ("a", "b", "d")) == 1
    assert overlap(("a", "b", "c"), ("c", "b", "a")) == 2
    assert overlap(("a", "b"), ("a", "c", "b")) == 0


def test_the_distance_of_a_found_path_is_the_distance_found():
    overlay = random_degree(12, 3, Draws(5)).delays
    found = shortest_from(overlay, "b01")
    assert all(distance(overlay, path) == found.distance[t] for t, path in found.paths.items())


def test_the_distance_of_a_path_that_does_not_exist_is_an_error():
    with pytest.raises(KeyError):
        distance(DIAMOND, ("b", "c"))


def test_paths_work_on_a_network_of_the_topology_zoo():
    text = """graph [
      node [ id 0 Latitude 0.0 Longitude 0.0 label "west" ]
      node [ id 1 Latitude 0.0 Longitude 1.0 label "middle" ]
      node [ id 2 Latitude 0.0 Longitude 2.0 label "east" ]
      edge [ source 0 target 1 ] edge [ source 1 target 2 ] ]"""
    assert shortest_from(from_gml(text).delays, "west").next_hop("east") == "middle"
