"""Overlays: what a valid one is, what each generator promises, and how bad input is answered."""

import pickle
from collections import Counter
from itertools import combinations
from math import asin, cos, inf, nan, radians, sin, sqrt
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.core.errors import ConfigError
from tidings.core.rng import Draws
from tidings.core.topology import (
    Link,
    Topology,
    TransitStub,
    broker_names,
    connect,
    from_gml,
    from_round_trips,
    full_mesh,
    harmony_testbed,
    layered,
    random_degree,
    transit_stub,
)

SCENARIOS = Path(__file__).parents[3] / "scenarios"
DATA = SCENARIOS / "data"


def degrees(overlay):
    return [len(overlay.neighbours(broker)) for broker in overlay.brokers]


def link_delays(overlay):
    return {(link.a, link.b): link.delay_s for link in overlay.links}


# --- the value


def test_a_topology_answers_for_neighbours_and_delays_in_both_directions():
    overlay = connect(["x", "y", "z"], [("z", "x", 0.2), ("y", "z", 0.1)])
    assert overlay.links == (Link("x", "z", 0.2), Link("y", "z", 0.1))
    assert overlay.neighbours("z") == ("x", "y")
    assert overlay.delay_s("x", "z") == overlay.delay_s("z", "x") == 0.2
    assert overlay.is_connected()


def test_an_island_makes_a_topology_disconnected():
    assert not connect(["x", "y", "z"], [("x", "y", 0.1)]).is_connected()
    assert connect(["alone"], []).is_connected()


def test_the_order_in_which_links_are_given_does_not_matter():
    links = [("x", "y", 0.1), ("z", "y", 0.2), ("x", "z", 0.3)]
    assert connect("xyz", links) == connect("xyz", [(b, a, s) for a, b, s in reversed(links)])


def test_a_topology_survives_pickling_and_json():
    overlay = harmony_testbed()
    assert overlay.delays
    assert pickle.loads(pickle.dumps(overlay)) == overlay
    assert msgspec.json.decode(msgspec.json.encode(overlay), type=Topology) == overlay


@pytest.mark.parametrize(
    ("brokers", "links", "field"),
    [
        ("xy", [("x", "q", 0.1)], "links"),
        ("xy", [("x", "x", 0.1)], "links"),
        ("xy", [("x", "y", 0.1), ("y", "x", 0.2)], "links"),
        ("xy", [("x", "y", -0.1)], "delay_s"),
        ("xy", [("x", "y", inf)], "delay_s"),
        ("xy", [("x", "y", nan)], "delay_s"),
        ("xx", [], "brokers"),
        ("", [], "brokers"),
    ],
)
def test_a_link_or_broker_that_cannot_be_is_refused_by_source_and_field(brokers, links, field):
    with pytest.raises(ConfigError) as caught:
        connect(brokers, links, source="overlay.toml")
    assert (caught.value.source, caught.value.field) == ("overlay.toml", field)


def test_a_topology_cannot_be_made_with_its_ends_out_of_order():
    with pytest.raises(ConfigError, match="order of the brokers"):
        Topology(("x", "y"), (Link("y", "x", 0.1),))


@pytest.mark.parametrize("count", [1, 9, 10, 99, 100, 160])
def test_names_sort_as_their_numbers_do(count):
    names = broker_names(count)
    assert len(names) == count
    assert list(names) == sorted(names)


def test_names_are_padded_only_where_it_is_needed():
    assert broker_names(9)[0] == "b1"
    assert (broker_names(20)[0], broker_names(20)[-1]) == ("b01", "b20")


# --- meshes and degrees


def test_a_full_mesh_links_every_pair_within_the_range_of_delays():
    overlay = full_mesh(20, Draws(7))
    assert len(overlay.links) == 190
    assert all(0.010 <= link.delay_s < 0.050 for link in overlay.links)
    assert len({link.delay_s for link in overlay.links}) == 190


def test_chance_comes_from_the_seed_alone():
    assert random_degree(20, 5, Draws(7)) == random_degree(20, 5, Draws(7))
    assert random_degree(20, 5, Draws(7)) != random_degree(20, 5, Draws(8))


def test_a_link_has_the_same_delay_in_a_mesh_and_in_a_sparser_graph_of_the_same_seed():
    mesh = link_delays(full_mesh(20, Draws(7)))
    assert link_delays(random_degree(20, 5, Draws(7))).items() <= mesh.items()


@settings(max_examples=60, deadline=None)
@given(data=st.data(), brokers=st.integers(3, 24), seed=st.integers(0, 10**6))
def test_a_random_graph_is_connected_and_has_the_degree_asked_for(data, brokers, seed):
    degree = data.draw(st.integers(2, brokers - 1))
    overlay = random_degree(brokers, degree, Draws(seed))
    odd = brokers * degree % 2
    assert overlay.is_connected()
    assert Counter(degrees(overlay)) == Counter([degree] * (brokers - odd) + [degree - 1] * odd)


@pytest.mark.parametrize("degree", [2, 3, 8, 80, 158, 159])
def test_large_graphs_of_any_degree_are_found(degree):
    overlay = random_degree(160, degree, Draws(1))
    assert set(degrees(overlay)) == {degree}
    assert overlay.is_connected()


def test_random_graphs_of_five_brokers_and_degree_two_are_all_equally_likely():
    # There are twelve 5-cycles; 1200 draws give each 100 on average, deviation below 10.
    counts = Counter(tuple(link_delays(random_degree(5, 2, Draws(s)))) for s in range(1200))
    assert len(counts) == 12
    assert all(60 < count < 140 for count in counts.values())


@pytest.mark.parametrize(("brokers", "degree"), [(5, 5), (5, 9), (5, 0), (5, -1), (5, 1), (1, 1)])
def test_a_degree_that_cannot_be_is_refused(brokers, degree):
    with pytest.raises(ConfigError) as caught:
        random_degree(brokers, degree, Draws(1), source="s.toml")
    assert (caught.value.source, caught.value.field, caught.value.value) == (
        "s.toml",
        "degree",
        degree,
    )


def test_two_brokers_may_have_degree_one():
    assert len(random_degree(2, 1, Draws(1)).links) == 1


@pytest.mark.parametrize("delay_ms", [(50.0, 10.0), (-1.0, 10.0), (1.0, inf), (nan, 1.0)])
def test_a_range_of_delays_that_cannot_be_is_refused(delay_ms):
    with pytest.raises(ConfigError, match="0 <= low <= high"):
        full_mesh(3, Draws(1), delay_ms)


# --- layers, transit and stubs, the testbed


def test_layers_are_linked_as_the_bounded_delay_paper_says():
    overlay = layered((4, 4, 8, 16), Draws(7))
    first, second = overlay.brokers[:4], overlay.brokers[4:8]
    third, fourth = overlay.brokers[8:16], overlay.brokers[16:]
    for broker in second:
        assert set(first) <= set(overlay.neighbours(broker))
    for layer, above in ((third, second), (fourth, third)):
        for broker in layer:
            assert len(set(overlay.neighbours(broker)) & set(above)) == 2
    assert len(overlay.links) == 16 + 2 * 8 + 2 * 16
    assert overlay.is_connected()


def test_publishers_apart_stand_before_the_same_layers_with_one_link_each():
    alone, apart = (layered((4, 4, 8, 16), Draws(7), publishers=n) for n in (0, 6))
    assert apart.brokers == ("p1", "p2", "p3", "p4", "p5", "p6", *alone.brokers)
    homes = [apart.neighbours(publisher) for publisher in apart.brokers[:6]]
    assert homes == [("b01",), ("b02",), ("b03",), ("b04",), ("b01",), ("b02",)]
    assert [link for link in apart.links if link.a not in apart.brokers[:6]] == list(alone.links)


def test_layers_choose_their_uplinks_by_chance():
    assert len({tuple(link_delays(layered((4, 4, 8), Draws(s)))) for s in range(5)}) == 5


@pytest.mark.parametrize("sizes", [(), (4,), (4, 0, 8)])
def test_layers_that_cannot_be_are_refused(sizes):
    with pytest.raises(ConfigError, match="layer_sizes"):
        layered(sizes, Draws(1))


def test_a_transit_stub_network_has_the_nodes_of_the_pruning_paper():
    overlay = transit_stub(TransitStub(), Draws(7))
    assert len(overlay.brokers) == 100
    assert overlay.is_connected()


def test_a_stub_hangs_on_its_transit_node_by_one_link():
    parameters = TransitStub(transit_domains=2, transit_nodes_per_domain=2, nodes_per_stub=4)
    overlay = transit_stub(parameters, Draws(3))
    transit, stubs = overlay.brokers[:4], overlay.brokers[4:]
    for start in range(0, len(stubs), 4):
        stub = stubs[start : start + 4]
        outside = [n for broker in stub for n in overlay.neighbours(broker) if n not in stub]
        assert outside == [transit[start // 4 // 3]]


def test_delays_of_a_transit_stub_network_come_from_the_range_of_their_level():
    parameters = TransitStub(
        transit_domains=2,
        domain_delay_ms=(40.0, 40.0),
        transit_delay_ms=(30.0, 30.0),
        access_delay_ms=(20.0, 20.0),
        stub_delay_ms=(10.0, 10.0),
        stub_link_probability=1.0,
    )
    counts = Counter(
        round(link.delay_s * 1000) for link in transit_stub(parameters, Draws(2)).links
    )
    assert counts == {40: 1, 30: 2, 20: 12, 10: 12 * 3}


def test_extra_links_are_added_and_never_double_another():
    plain = transit_stub(TransitStub(), Draws(5))
    extra = transit_stub(TransitStub(extra_transit_stub_links=7, extra_stub_stub_links=5), Draws(5))
    assert set(plain.links) < set(extra.links)
    assert len(extra.links) == len(plain.links) + 12


def test_more_extra_links_than_there_are_pairs_are_refused():
    with pytest.raises(ConfigError, match="extra_stub_stub_links"):
        transit_stub(TransitStub(extra_stub_stub_links=10**6), Draws(1))


def test_domains_that_can_never_be_in_one_piece_are_refused():
    with pytest.raises(ConfigError, match="stub_link_probability"):
        transit_stub(TransitStub(stub_link_probability=0.0), Draws(1))


def test_the_testbed_has_the_delays_that_the_text_forces():
    overlay = harmony_testbed()
    forced_ms = {("n1", "n2"): 16, ("n1", "n3"): 20, ("n3", "n4"): 15, ("n2", "n5"): 12}
    for (a, b), delay_ms in (forced_ms | {("n1", "n5"): 6}).items():
        assert overlay.delay_s(a, b) == delay_ms / 1000
    assert min(overlay.delay_s("n2", "n3"), overlay.delay_s("n2", "n4")) == 0.005
    assert len(overlay.links) == 10


# --- networks on the map


def gml(*nodes, edges=()):
    lines = ["graph ["]
    lines += [f"  node [ {node} ]" for node in nodes]
    lines += [f"  edge [ source {a} target {b} ]" for a, b in edges]
    return "\n".join([*lines, "]"])


def place(identity, latitude, longitude, label="city"):
    return f'id {identity} label "{label}" Latitude {latitude} Longitude {longitude}'


@pytest.mark.parametrize(
    ("name", "brokers", "links"), [("AttMpls", 25, 56), ("Abilene", 11, 14), ("Geant2012", 40, 61)]
)
def test_the_shipped_networks_are_read_whole(name, brokers, links):
    overlay = from_gml((DATA / f"{name}.gml").read_text())
    assert (len(overlay.brokers), len(overlay.links)) == (brokers, links)
    assert overlay.is_connected()


def test_a_delay_is_the_great_circle_at_two_thirds_of_light_times_the_detour():
    overlay = from_gml((DATA / "Abilene.gml").read_text(), detour_factor=1.3)
    latitude, longitude = (radians(40.71427), radians(41.85003)), (-74.00597, -87.65005)
    half = radians(longitude[1] - longitude[0]) / 2
    root = sin((latitude[1] - latitude[0]) / 2) ** 2
    root += cos(latitude[0]) * cos(latitude[1]) * sin(half) ** 2
    haversine_km = 2 * 6371.0 * asin(sqrt(root))
    expected_s = 1.3 * haversine_km / (299_792.458 * 2 / 3)
    assert overlay.delay_s("New-York", "Chicago") == pytest.approx(expected_s, rel=1e-9)


def test_nodes_on_both_sides_of_the_date_line_are_near():
    text = gml(place(0, 0, 179.5, "west"), place(1, 0, -179.5, "east"), edges=[(0, 1)])
    assert from_gml(text).delay_s("west", "east") < 0.001


def test_a_node_without_coordinates_stands_between_its_neighbours():
    text = gml(
        place(0, 0, 0, "left"),
        'id 1 label "lost"',
        place(2, 0, 10, "right"),
        edges=[(0, 1), (1, 2), (0, 2)],
    )
    overlay = from_gml(text)
    half = overlay.delay_s("left", "right") / 2
    assert overlay.delay_s("left", "lost") == pytest.approx(half)
    assert overlay.delay_s("lost", "right") == pytest.approx(half)


def test_a_chain_of_nodes_without_coordinates_is_placed_from_its_ends():
    text = gml(
        place(0, 0, 0, "end"), 'id 1 label "near"', 'id 2 label "far"', edges=[(0, 1), (1, 2)]
    )
    assert from_gml(text).delay_s("near", "far") == 0.0001


def test_a_network_without_any_coordinates_is_refused():
    with pytest.raises(ConfigError, match="Latitude and Longitude"):
        from_gml(gml('id 0 label "a"', 'id 1 label "b"', edges=[(0, 1)]))


def test_doubled_links_are_one_and_loops_are_left_out():
    text = gml(place(0, 0, 0, "a"), place(1, 0, 1, "b"), edges=[(0, 1), (1, 0), (0, 1), (1, 1)])
    assert len(from_gml(text).links) == 1


def test_names_are_unique_and_fit_for_files():
    text = gml(
        place(0, 0, 0, "New York"),
        place(1, 1, 1, "New York"),
        "id 7 Latitude 2 Longitude 2",
        place(3, 3, 3, "New York-2"),
        place(4, 4, 4, "a/b &#38; c"),
    )
    assert from_gml(text).brokers == ("New-York", "New-York-2", "node-7", "New-York-2-2", "a-b-c")


def test_a_place_that_the_map_calls_none_has_the_name_of_its_number() -> None:
    text = gml(place(3, 0, 0, "None"), place(4, 1, 1, "None"), edges=[(3, 4)])
    assert from_gml(text).brokers == ("node-3", "node-4")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "graph"),
        ("graph [ node [ id 0", "the end"),
        ("graph [\n ] ]", "line 2"),
        ("graph [\n\n id ? ]", "line 3"),
        ("graph [ node [ id ] ]", "line 1"),
        ("graph [ ]", "brokers"),
        (gml('label "no id"'), "node.id"),
        (gml(place(0, 0, 0), place(0, 1, 1)), "node.id"),
        (gml(place(0, 91, 0)), "node.Latitude"),
        (gml(place(0, 0, '"east"')), "node.Longitude"),
        (gml(place(0, 0, 0), edges=[(0, 5)]), "edge.target"),
    ],
)
def test_a_gml_text_with_a_fault_is_refused_by_field(text, field):
    with pytest.raises(ConfigError) as caught:
        from_gml(text)
    assert caught.value.field == field


# --- measured round trips


def round_trips(rows):
    names = ("slice", "source", "target", "rtt_ms")
    return pa.table({n: [row[i] for row in rows] for i, n in enumerate(names)})


def shipped_round_trips():
    return pq.read_table(DATA / "seattle_rtt_20x50.parquet")


def test_a_delay_is_half_the_median_round_trip_and_the_mean_of_both_directions():
    rows = [(1, 0, 1, 10.0), (2, 0, 1, 20.0), (3, 0, 1, 900.0), (1, 1, 0, 40.0)]
    overlay = from_round_trips(round_trips(rows), 2, Draws(1))
    assert link_delays(overlay) == {("h0", "h1"): pytest.approx((20 + 40) / 2 / 2 / 1000)}


def test_one_slice_can_be_chosen():
    measured = round_trips([(1, 0, 1, 10.0), (2, 0, 1, 30.0)])
    assert from_round_trips(measured, 2, Draws(1), slice_number=2).delay_s("h0", "h1") == 0.015


def test_hosts_without_a_measurement_between_them_have_no_link():
    rows = [(1, 0, 1, 10.0), (1, 1, 12, 10.0), (1, 0, 12, None), (1, 5, 5, 1.0)]
    overlay = from_round_trips(round_trips(rows), 4, Draws(1))
    assert overlay.brokers == ("h00", "h01", "h05", "h12")
    assert set(link_delays(overlay)) == {("h00", "h01"), ("h01", "h12")}


def test_the_shipped_round_trips_give_an_overlay_of_any_of_their_hosts():
    measured = shipped_round_trips()
    overlay = from_round_trips(measured, 12, Draws(1))
    assert len(overlay.brokers) == 12
    assert overlay.is_connected()
    assert overlay != from_round_trips(measured, 12, Draws(2))
    everyone = from_round_trips(measured, 20, Draws(1))
    assert link_delays(overlay).items() <= link_delays(everyone).items()


def test_shipped_delays_equal_those_computed_by_pandas():
    measured = shipped_round_trips()
    medians = measured.to_pandas().groupby(["source", "target"])["rtt_ms"].median()
    overlay = from_round_trips(measured, 20, Draws(1))
    for a, b in combinations(range(0, 100, 5), 2):
        both = [medians[ends] for ends in ((a, b), (b, a)) if ends in medians.index]
        expected_s = sum(both) / len(both) / 2000
        assert overlay.delay_s(f"h{a:02}", f"h{b:02}") == pytest.approx(expected_s)


# --- measured round trips that follow the slices


def delays_in_slices(overlay, a, b, slice_s=1.0):
    (link,) = (link for link in overlay.links if (link.a, link.b) == (a, b))
    assert [from_s for from_s, _ in link.delay_steps] == [
        number * slice_s for number in range(len(link.delay_steps))
    ]
    assert link.repeat_s == len(link.delay_steps) * slice_s
    return [delay_s for _, delay_s in link.delay_steps]


def test_a_delay_follows_the_slices_and_is_their_mean_in_the_long_run():
    rows = [(7, 0, 1, 10.0), (7, 1, 0, 30.0), (3, 0, 1, 200.0), (9, 1, 0, 60.0)]
    overlay = from_round_trips(round_trips(rows), 2, Draws(1), slice_s=4.0)
    assert delays_in_slices(overlay, "h0", "h1", 4.0) == pytest.approx([0.1, 0.01, 0.03])
    assert overlay.delay_s("h0", "h1") == pytest.approx(0.14 / 3)
    assert overlay.links[0].start_delay_s == 0.1


def test_a_pair_without_a_measurement_in_a_slice_keeps_the_delay_of_the_slice_before():
    rows = [(number, 0, 1, 10.0 * number) for number in range(1, 6)]
    rows += [(2, 1, 2, 40.0), (3, 1, 2, None), (4, 1, 2, float("nan")), (5, 2, 1, 8.0)]
    overlay = from_round_trips(round_trips(rows), 3, Draws(1), slice_s=1.0)
    assert delays_in_slices(overlay, "h0", "h1") == [0.005, 0.01, 0.015, 0.02, 0.025]
    assert delays_in_slices(overlay, "h1", "h2") == [0.02, 0.02, 0.02, 0.02, 0.004]
    assert {(link.a, link.b) for link in overlay.links} == {("h0", "h1"), ("h1", "h2")}


def test_shipped_slices_equal_those_computed_by_pandas():
    measured = shipped_round_trips()
    rows = measured.to_pandas()
    rows["a"], rows["b"] = rows[["source", "target"]].min(axis=1), rows[["source", "target"]].max(1)
    means = rows.groupby(["a", "b", "slice"])["rtt_ms"].mean().unstack("slice")
    expected_s = means.ffill(axis=1).bfill(axis=1) / 2000
    assert means.isna().sum().sum() == 60  # the data does have gaps
    overlay = from_round_trips(measured, 20, Draws(1), slice_s=60.0)
    assert len(overlay.links) == len(expected_s) == 190
    for (a, b), delays_s in expected_s.iterrows():
        found_s = delays_in_slices(overlay, f"h{a:02}", f"h{b:02}", 60.0)
        assert found_s == pytest.approx(delays_s.tolist())
        assert overlay.delay_s(f"h{a:02}", f"h{b:02}") == pytest.approx(delays_s.mean())


def test_following_the_slices_draws_the_same_hosts_as_standing_still():
    measured = shipped_round_trips()
    still, moving = (from_round_trips(measured, 7, Draws(3), slice_s=s) for s in (0.0, 5.0))
    assert still.brokers == moving.brokers
    assert all(not link.delay_steps for link in still.links)


def test_one_slice_cannot_be_followed():
    with pytest.raises(ConfigError) as caught:
        from_round_trips(round_trips([(1, 0, 1, 10.0)]), 2, Draws(1), 1, slice_s=5.0)
    assert caught.value.field == "slice_s"


@pytest.mark.parametrize(
    ("steps", "repeat_s", "field"),
    [
        (((0.0, 0.1), (1.0, float("nan"))), 2.0, "delay_s"),
        (((0.0, 0.1), (1.0, -0.1)), 2.0, "delay_s"),
        (((1.0, 0.1),), 2.0, "delay_steps"),
        (((0.0, 0.1), (2.0, 0.1), (1.0, 0.1)), 3.0, "delay_steps"),
        (((0.0, 0.1), (0.0, 0.2)), 2.0, "delay_steps"),
        (((0.0, 0.1), (2.0, 0.2)), 2.0, "repeat_s"),
    ],
)
def test_steps_that_make_no_sense_are_refused(steps, repeat_s, field):
    with pytest.raises(ConfigError) as caught:
        Topology(("x", "y"), (Link("x", "y", 0.1, steps, repeat_s),))
    assert caught.value.field == field
    assert "x-y" in caught.value.accepted


@pytest.mark.parametrize(
    ("hosts", "slice_number", "field"),
    [(1, None, "hosts"), (3, None, "hosts"), (2, 9, "slice_number")],
)
def test_hosts_and_slices_that_are_not_there_are_refused(hosts, slice_number, field):
    measured = round_trips([(1, 0, 1, 10.0)])
    with pytest.raises(ConfigError) as caught:
        from_round_trips(measured, hosts, Draws(1), slice_number)
    assert caught.value.field == field
