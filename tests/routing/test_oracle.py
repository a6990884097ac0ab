"""`oracle`: the shortest way around all failures, present and to come."""

from itertools import pairwise
from math import inf
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_parcel, connected
from support.scenarios import a_scenario, outcome, served, wanted
from support.views import a_view

from tidings.core.parcel import Parcel
from tidings.core.trace import Dropped
from tidings.routing import ROUTERS, SIMULATOR_ONLY, live_strategies
from tidings.routing.base import Route, View
from tidings.routing.options import Options

Links = tuple[tuple[str, str, float], ...]
Darkness = dict[frozenset[str], tuple[tuple[float, float], ...]]  # [from, to) by link


def takes(dark: Darkness, a: str, b: str, at: float) -> bool:
    return not any(start <= at < end for start, end in dark.get(frozenset((a, b)), ()))


class Asked:
    """An oracle that foresees failures, and the view's delays otherwise."""

    def __init__(self, dark: Darkness | None = None) -> None:
        self._dark = dark or {}
        self._view = View("")
        self._oracle = ROUTERS["oracle"](Options(foresight=self._crossing_s))

    def _crossing_s(self, a: str, b: str, at: float) -> float:
        return self._view.links[a][b].delay_s if takes(self._dark, a, b, at) else inf

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        self._view = view
        return self._oracle.route(parcel, view, now)

    def reroute(self, parcel: Parcel, failed: str, view: View, now: float) -> Route:
        return self._oracle.reroute(parcel, failed, view, now)


def hops(route: Route) -> dict[str, list[str]]:
    return {hop.neighbour: [d.broker for d in hop.destinations] for hop in route.hops}


def never(a: str, b: str) -> Darkness:
    return {frozenset((a, b)): ((0.0, inf),)}


TRIANGLE: Links = (("b1", "b2", 0.010), ("b2", "b3", 0.010), ("b1", "b3", 0.050))


# ---- the choice


def test_without_failures_it_takes_the_fastest_way() -> None:
    assert hops(Asked().route(a_parcel("b3"), a_view("b1", *TRIANGLE), 0.0)) == {"b2": ["b3"]}


@pytest.mark.parametrize("link", [("b1", "b2"), ("b2", "b3")])
def test_a_failure_anywhere_on_the_way_is_avoided_from_the_start(link: tuple[str, str]) -> None:
    route = Asked(never(*link)).route(a_parcel("b3"), a_view("b1", *TRIANGLE), 0.0)
    assert hops(route) == {"b3": ["b3"]}


@pytest.mark.parametrize(
    ("dark_s", "next_hop"),
    [((0.0, 0.010), "b2"), ((0.0, 0.011), "b3"), ((0.010, 0.011), "b3"), ((0.011, 9.0), "b2")],
)
def test_what_counts_is_the_instant_at_which_a_link_is_reached(
    dark_s: tuple[float, float], next_hop: str
) -> None:
    oracle = Asked({frozenset(("b2", "b3")): (dark_s,)})
    assert hops(oracle.route(a_parcel("b3"), a_view("b1", *TRIANGLE), 0.0)) == {next_hop: ["b3"]}


def test_destinations_behind_one_neighbour_share_one_copy() -> None:
    links: Links = (("b1", "b2", 0.1), ("b2", "b3", 0.1), ("b2", "b4", 0.1), ("b1", "b4", 0.1))
    view = a_view("b1", *links)
    parcel = a_parcel("b3", "b4")
    assert hops(Asked().route(parcel, view, 0.0)) == {"b2": ["b3"], "b4": ["b4"]}
    assert hops(Asked(never("b1", "b4")).route(parcel, view, 0.0)) == {"b2": ["b3", "b4"]}


def test_who_cannot_be_reached_is_stranded_and_the_others_are_served() -> None:
    links: Links = (*TRIANGLE, ("b3", "b4", 0.01))
    route = Asked(never("b3", "b4")).route(a_parcel("b4", "b2", "b9"), a_view("b1", *links), 0.0)
    assert hops(route) == {"b2": ["b2"]}
    assert [d.broker for d in route.stranded] == ["b4", "b9"]


def test_a_link_of_our_own_that_is_down_is_not_used_but_its_far_end_is_reached() -> None:
    view = a_view("b1", *TRIANGLE, down=("b2",))
    assert hops(Asked().route(a_parcel("b2", "b3"), view, 0.0)) == {"b3": ["b2", "b3"]}


def test_it_never_goes_back_to_a_broker_that_has_held_the_parcel() -> None:
    parcel = a_parcel("b3", path=("b1", "b2"))
    route = Asked(never("b2", "b3")).route(parcel, a_view("b2", *TRIANGLE), 0.0)
    assert (route.hops, route.stranded) == ((), parcel.destinations)
    links: Links = (("b1", "b2", 0.01), ("b1", "b3", 0.01), ("b2", "b3", 0.05))
    assert hops(Asked().route(parcel, a_view("b2", *links), 0.0)) == {"b3": ["b3"]}


@pytest.mark.parametrize("order", [1, -1])
def test_of_equally_early_ways_the_fewest_links_and_then_the_first_name_decide(order: int) -> None:
    links: Links = (
        ("b1", "b4", 0.5),
        ("b4", "b5", 0.5),
        ("b1", "b3", 0.5),
        ("b3", "b5", 0.5),
        ("b1", "b2", 0.25),
        ("b2", "b6", 0.25),
        ("b6", "b5", 0.5),
        ("b1", "b5", 0.75),
    )
    view = a_view("b1", *links[::order])
    assert hops(Asked(never("b1", "b5")).route(a_parcel("b5"), view, 0.0)) == {"b3": ["b5"]}


def test_the_shortest_paths_follow_the_view_when_its_version_changes() -> None:
    view, oracle = a_view("b1", *TRIANGLE), Asked()
    assert hops(oracle.route(a_parcel("b3"), view, 0.0)) == {"b2": ["b3"]}
    view.links = a_view("b1", ("b1", "b3", 0.1)).links
    view.version += 1
    assert hops(oracle.route(a_parcel("b3"), view, 0.0)) == {"b3": ["b3"]}


def test_what_is_lost_in_spite_of_foresight_is_lost() -> None:
    parcel = a_parcel("b2", "b3")
    route = Asked().reroute(parcel, "b2", a_view("b1", *TRIANGLE), 0.0)
    assert (route.hops, route.stranded) == ((), parcel.destinations)


# ---- against enumeration

UNIT_S = 1 / 64  # sums of multiples are exact, and ties are many


def overlays() -> st.SearchStrategy[Links]:
    def weighed(brokers: int, density: float, seed: int, delays: list[int]) -> Links:
        graph = nx.gnp_random_graph(brokers, density, seed=seed)
        return tuple(
            (f"b{a + 1}", f"b{b + 1}", delays[i % len(delays)] * UNIT_S)
            for i, (a, b) in enumerate(graph.edges)
        )

    delays = st.lists(st.integers(1, 4), min_size=15, max_size=15)
    return st.builds(weighed, st.integers(3, 6), st.floats(0.4, 1.0), st.integers(0, 10**6), delays)


def darkness(links: Links, intervals: st.SearchStrategy[Any]) -> st.SearchStrategy[Darkness]:
    return st.fixed_dictionaries({frozenset((a, b)): intervals for a, b, _ in links})


def earliest(links: Links, dark: Darkness, now: float) -> float:
    """When b2 can be reached from b1 at best, by any path without loops; inf: never."""
    graph = nx.Graph()
    graph.add_nodes_from(["b1", "b2"])
    graph.add_weighted_edges_from(links)
    arrivals = [inf]
    for path in nx.all_simple_paths(graph, "b1", "b2"):
        at = now
        for a, b in pairwise(path):
            at = at + graph[a][b]["weight"] if takes(dark, a, b, at) else inf
        arrivals.append(at)
    return min(arrivals)


def travelled(links: Links, dark: Darkness, now: float) -> float:
    """When a message from b1 arrives at b2, every broker on the way asking its own oracle."""
    path, at = ["b1"], now
    delays = {frozenset((a, b)): delay_s for a, b, delay_s in links}
    while path[-1] != "b2":
        view = a_view(path[-1], *links)
        route = Asked(dark).route(a_parcel("b2", path=tuple(path)), view, at)
        if not route.hops:
            assert len(path) == 1, "what was sent must arrive"
            return inf
        onward = route.hops[0].neighbour
        assert takes(dark, path[-1], onward, at)
        at += delays[frozenset((path[-1], onward))]
        path.append(onward)
    assert len(set(path)) == len(path)
    return at


BEGINS = st.integers(0, 12).map(lambda start: ((start * UNIT_S, inf),))
LASTS = st.sampled_from([(), (), ((0.0, inf),), ((0.0, 2 * UNIT_S),)])


@given(st.data(), overlays())
def test_it_arrives_as_early_as_any_path_can_when_no_failure_ends_on_the_way(
    data: st.DataObject, links: Links
) -> None:
    """Links fail at any instant while the message travels, or have recovered before it left."""
    dark = data.draw(darkness(links, st.one_of(BEGINS, LASTS)))
    now = 2 * UNIT_S
    assert travelled(links, dark, now) == earliest(links, dark, now)


@given(st.data(), overlays())
def test_whatever_fails_and_recovers_it_takes_working_links_and_what_was_sent_arrives(
    data: st.DataObject, links: Links
) -> None:
    edges = st.lists(st.integers(0, 16), max_size=6, unique=True).map(sorted)
    intervals = edges.map(
        lambda e: tuple((a * UNIT_S, b * UNIT_S) for a, b in zip(e[::2], e[1::2], strict=False))
    )
    dark = data.draw(darkness(links, intervals))
    assert travelled(links, dark, 0.0) >= earliest(links, dark, 0.0)


# ---- whole runs


MESH: dict[str, Any] = {
    "run.seconds": 60.0,
    "topology.brokers": 10,
    "workload.topics": 5,
    "links.failure_probability": 0.1,
    "links.ack": "instant",  # one that travels may meet a failure itself
    "broker.strategy": "oracle",
}


@pytest.mark.parametrize("changes", [{}, {"links.processing_ms": 3.0}])
def test_in_a_full_mesh_without_losses_everything_arrives(changes: dict[str, Any]) -> None:
    result, tables = outcome(a_scenario({**MESH, **changes}))
    assert served(tables) == wanted(tables)
    assert result.deliveries > 10_000
    assert "dropped" not in tables


def test_losses_are_not_foreseen() -> None:
    lossy = {"run.seconds": 10.0, "links.loss_ratio": 0.05, "broker.exhausted": "drop"}
    _, tables = outcome(a_scenario({**MESH, **lossy}))
    lost = len(wanted(tables)) - len(served(tables))
    assert 0.03 < lost / len(wanted(tables)) < 0.12
    assert {row["reason"] for row in tables["dropped"]} == {"unacknowledged"}


def test_the_same_seed_gives_the_same_run() -> None:
    changes = {**MESH, "run.seconds": 5.0, "topology.delay_ms": [20.0, 20.0]}
    assert outcome(a_scenario(changes))[0].digest == outcome(a_scenario(changes))[0].digest


# ---- where it cannot run


def test_only_the_simulator_offers_it() -> None:
    assert "oracle" in SIMULATOR_ONLY
    assert set(live_strategies()) == ROUTERS.keys() - {"oracle"}


def test_a_broker_without_foresight_drops_what_asks_for_it() -> None:
    net = connected(("b1", "b2"))
    net.subscribe("b2")
    net.run(1.0)
    net.publish("b1", strategy="oracle")
    net.run(1.0)
    assert [row.reason for row in net.rows_of(Dropped)] == ["unknown-strategy"]
    assert net.delivered == []
