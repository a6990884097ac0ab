"""`d-tree` and `r-tree`: one way to every destination, the best by one weight."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_parcel
from support.views import a_view

from tidings.routing import ROUTERS
from tidings.routing.base import Route
from tidings.routing.options import Options


def hops(route: Route) -> dict[str, list[str]]:
    return {hop.neighbour: [d.broker for d in hop.destinations] for hop in route.hops}


DETOUR = (("b1", "b2", 0.1), ("b1", "b3", 0.02), ("b3", "b2", 0.02))


def test_d_tree_takes_the_fastest_way_and_r_tree_the_one_of_fewest_links() -> None:
    view, parcel = a_view("b1", *DETOUR), a_parcel("b2")
    assert hops(ROUTERS["d-tree"](Options()).route(parcel, view, 0.0)) == {"b3": ["b2"]}
    assert hops(ROUTERS["r-tree"](Options()).route(parcel, view, 0.0)) == {"b2": ["b2"]}


def test_among_ways_of_equally_many_links_r_tree_takes_the_fastest() -> None:
    links = (("b1", "b2", 0.1), ("b2", "b4", 0.1), ("b1", "b3", 0.1), ("b3", "b4", 0.05))
    assert hops(ROUTERS["r-tree"](Options()).route(a_parcel("b4"), a_view("b1", *links), 0.0)) == {
        "b3": ["b4"]
    }


def test_destinations_behind_one_neighbour_share_one_copy() -> None:
    links = (("b1", "b2", 0.1), ("b2", "b3", 0.1), ("b2", "b4", 0.1), ("b1", "b5", 0.1))
    route = ROUTERS["d-tree"](Options()).route(
        a_parcel("b3", "b4", "b5"), a_view("b1", *links), 0.0
    )
    assert hops(route) == {"b2": ["b3", "b4"], "b5": ["b5"]}
    assert route.stranded == ()


@pytest.mark.parametrize("others", [(), ("b2",)])
def test_a_destination_without_a_way_is_stranded(others: tuple[str, ...]) -> None:
    route = ROUTERS["d-tree"](Options()).route(a_parcel("b9", *others), a_view("b1", *DETOUR), 0.0)
    assert [d.broker for d in route.stranded] == ["b9"]
    assert [broker for served in hops(route).values() for broker in served] == list(others)


def test_the_way_never_leads_back_to_a_broker_that_has_held_the_parcel() -> None:
    view = a_view("b1", *DETOUR)
    for parcel in (a_parcel("b2", path=("b3", "b1")), a_parcel("b2", "b3", path=("b3", "b1"))):
        route = ROUTERS["d-tree"](Options()).route(parcel, view, 0.0)
        assert route.hops == ()
        assert route.stranded == parcel.destinations


def test_a_link_of_our_own_that_is_down_is_not_used() -> None:
    route = ROUTERS["d-tree"](Options()).route(
        a_parcel("b2"), a_view("b1", *DETOUR, down=("b3",)), 0.0
    )
    assert route.hops == ()


def test_the_tree_grows_anew_when_the_view_changes_and_only_then() -> None:
    view, router = a_view("b1", *DETOUR), ROUTERS["d-tree"](Options())
    assert hops(router.route(a_parcel("b2"), view, 0.0)) == {"b3": ["b2"]}
    view.links = a_view("b1", ("b1", "b2", 0.1)).links
    assert hops(router.route(a_parcel("b2"), view, 0.0)) == {"b3": ["b2"]}
    view.version += 1
    assert hops(router.route(a_parcel("b2"), view, 0.0)) == {"b2": ["b2"]}


def test_a_tree_never_reroutes() -> None:
    parcel = a_parcel("b2", "b3")
    route = ROUTERS["d-tree"](Options()).reroute(parcel, "b2", a_view("b1", *DETOUR), 0.0)
    assert (route.hops, route.stranded) == ((), parcel.destinations)


@given(st.integers(3, 9), st.floats(0.2, 0.9), st.integers(0, 10**6), st.data())
def test_the_copies_of_a_parcel_reach_every_destination_by_shortest_paths(
    brokers: int, density: float, seed: int, data: st.DataObject
) -> None:
    """All brokers with one view route hop by hop; the sum of delays is what networkx finds."""
    graph = nx.gnp_random_graph(brokers, density, seed=seed)
    for i, (a, b) in enumerate(graph.edges):
        graph[a][b]["weight"] = 0.01 + (seed * (i + 7) % 97) / 1000
    links = [(f"b{a}", f"b{b}", d["weight"]) for a, b, d in graph.edges(data=True)]
    views = {f"b{n}": a_view(f"b{n}", *links) for n in graph}
    routers = {name: ROUTERS["d-tree"](Options()) for name in views}
    start, goal = (data.draw(st.sampled_from(sorted(graph))) for _ in range(2))
    if start == goal:
        return
    path, here = [f"b{start}"], f"b{start}"
    while here != f"b{goal}":
        route = routers[here].route(a_parcel(f"b{goal}", path=tuple(path)), views[here], 0.0)
        if not route.hops:
            assert not nx.has_path(graph, start, goal)
            return
        here = route.hops[0].neighbour
        path.append(here)
    delay_s = nx.path_weight(graph, [int(name[1:]) for name in path], "weight")
    assert delay_s == pytest.approx(nx.shortest_path_length(graph, start, goal, "weight"))
