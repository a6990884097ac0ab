"""What holds a graph together: as networkx finds it."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from tidings.core.graphs.joined import bridges, least_forest, pair, reached_from

BROKERS = [f"b{number}" for number in range(1, 9)]
pairs = st.tuples(st.sampled_from(BROKERS), st.sampled_from(BROKERS)).filter(
    lambda ends: ends[0] < ends[1]
)
links = st.dictionaries(pairs, st.sampled_from([0.0, 1.0, 2.0, 3.5, float("inf")]), max_size=20)


def near(weights):
    graph = {broker: {} for broker in BROKERS}
    for (a, b), weight in weights.items():
        graph[a][b] = graph[b][a] = weight
    return graph


def in_networkx(weights):
    peer = nx.Graph()
    peer.add_nodes_from(BROKERS)
    peer.add_weighted_edges_from((a, b, weight) for (a, b), weight in weights.items())
    return peer


@given(links)
def test_what_can_be_reached_equals_networkx(weights):
    peer = in_networkx(weights)
    assert reached_from(near(weights), "b1") == nx.node_connected_component(peer, "b1")


@given(links)
def test_bridges_equal_those_of_networkx(weights):
    assert bridges(near(weights)) == {pair(a, b) for a, b in nx.bridges(in_networkx(weights))}


@given(links)
def test_the_forest_reaches_as_much_as_all_links_do_at_the_least_weight(weights):
    forest, peer = least_forest(near(weights)), in_networkx(weights)
    least = nx.minimum_spanning_tree(peer)
    assert len(forest) == least.number_of_edges()
    assert sum(weights[link] for link in forest) == least.size(weight="weight")
    alone = {link: weights[link] for link in forest}
    assert {*map(frozenset, nx.connected_components(in_networkx(alone)))} == {
        *map(frozenset, nx.connected_components(peer))
    }


@given(links, st.data())
def test_without_links_outside_of_it_the_forest_is_the_same(weights, data):
    forest = least_forest(near(weights))
    spare = sorted({*weights} - forest)
    gone = data.draw(st.lists(st.sampled_from(spare), unique=True)) if spare else []
    rest = {link: weight for link, weight in weights.items() if link not in gone}
    assert least_forest(near(rest)) == forest


def test_where_all_weigh_the_same_no_broker_has_most_of_the_forest():
    everybody = [f"b{number:03}" for number in range(60)]
    graph = {a: {b: 1.0 for b in everybody if b != a} for a in everybody}
    forest = least_forest(graph)
    assert max(sum(name in link for link in forest) for name in everybody) < 12
