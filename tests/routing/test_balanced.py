"""`balanced`: messages of one source take turns between trees that use different links."""

from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import Net, a_parcel, pinned
from support.scenarios import a_scenario, outcome, served, wanted
from support.values import replace
from support.views import a_view as a_fast_view

from tidings.broker.broker import Broker
from tidings.broker.frames import Data
from tidings.core.links.estimates import LinkEstimate
from tidings.core.rng import Draws
from tidings.core.topology.generators import layered
from tidings.routing import ROUTERS
from tidings.routing.balanced import TREES, Balanced
from tidings.routing.base import Hop, View
from tidings.routing.options import Options

Link = tuple[str, str, float]
Paths = dict[str, tuple[str, ...]]

# Two ways around a ring, over b2 and, a little slower, over b4.
RING: tuple[Link, ...] = (
    ("b1", "b2", 0.010),
    ("b2", "b3", 0.010),
    ("b1", "b4", 0.011),
    ("b4", "b3", 0.011),
)


def a_view(me: str, *links: Link, down: tuple[str, ...] = ()) -> View:
    """What a broker sees of links that need so long for a kilobyte."""
    view = a_fast_view(me, *links, down=down)
    view.links = {
        a: {b: LinkEstimate(0.0, 1.0, e.delay_s / 1000) for b, e in near.items()}
        for a, near in view.links.items()
    }
    return view


def paths_of(hops: tuple[Hop, ...]) -> Paths:
    """The plan of all copies, by destination."""
    return {path[-1]: path for hop in hops for path in hop.plan}


def turns(router: Balanced, view: View, *destinations: str, count: int = TREES) -> list[Paths]:
    """The plans of so many messages from the view's own broker."""
    parcel = a_parcel(*destinations, path=(view.me,))
    return [paths_of(router.route(parcel, view, 0.0).hops) for _ in range(count)]


# ---- at the source


def test_messages_take_turns_between_ways_that_are_nearly_equal() -> None:
    over = [plan["b3"][1] for plan in turns(Balanced(), a_view("b1", *RING), "b3")]
    assert over[:4] == ["b2", "b4", "b2", "b4"]
    assert 3 <= over.count("b4") <= 4  # it is a little slower


def test_a_way_that_is_longer_than_the_toll_of_the_short_one_is_not_taken() -> None:
    links = (("b1", "b2", 0.01), ("b2", "b3", 0.01), ("b1", "b4", 0.09), ("b4", "b3", 0.09))
    plans = turns(Balanced(), a_view("b1", *links), "b3")
    assert {plan["b3"] for plan in plans} == {("b1", "b2", "b3")}


def test_where_links_take_no_time_for_bytes_all_take_the_shortest_path() -> None:
    plans = turns(Balanced(), a_fast_view("b1", *RING), "b3")
    assert {plan["b3"] for plan in plans} == {("b1", "b2", "b3")}


def test_destinations_that_share_a_path_share_a_copy() -> None:
    """Both ways to b3 are equal, and b5 and b6 lie behind it."""
    links = (*RING, ("b3", "b5", 0.01), ("b3", "b6", 0.01))
    parcel, view, router = a_parcel("b5", "b6"), a_view("b1", *links), Balanced()
    for _ in range(TREES):
        (hop,) = router.route(parcel, view, 0.0).hops
        assert [d.broker for d in hop.destinations] == ["b5", "b6"]
        assert {path[:3] for path in hop.plan} == {("b1", hop.neighbour, "b3")}


def test_the_turns_begin_again_and_two_routers_plan_alike() -> None:
    view = a_view("b1", *RING)
    plans = turns(Balanced(), view, "b2", "b3", "b4", count=2 * TREES)
    assert plans[:TREES] == plans[TREES:]
    assert plans == turns(Balanced(), view, "b2", "b3", "b4", count=2 * TREES)


def test_a_destination_without_a_way_is_stranded_and_the_others_are_not() -> None:
    route = Balanced().route(a_parcel("b9", "b3"), a_view("b1", *RING), 0.0)
    assert [d.broker for d in route.stranded] == ["b9"]
    assert list(paths_of(route.hops)) == ["b3"]


def test_a_link_of_its_own_that_is_down_is_not_planned_with() -> None:
    plans = turns(Balanced(), a_view("b1", *RING, down=("b2",)), "b2", "b3")
    assert all(plan == {"b2": ("b1", "b4", "b3", "b2"), "b3": ("b1", "b4", "b3")} for plan in plans)


def test_when_the_view_changes_so_do_the_trees() -> None:
    view, router = a_view("b1", *RING), Balanced()
    turns(router, view, "b3")
    view.links, view.version = a_view("b1", *RING[2:]).links, view.version + 1
    assert {plan["b3"] for plan in turns(router, view, "b3")} == {("b1", "b4", "b3")}


def test_what_was_not_acknowledged_is_lost() -> None:
    parcel = a_parcel("b3")
    route = Balanced().reroute(parcel, "b2", a_view("b1", *RING), 0.0)
    assert (route.hops, route.stranded) == ((), parcel.destinations)


@given(st.integers(2, 9), st.floats(0.2, 1.0), st.integers(0, 10**6), st.data())
def test_every_turn_is_a_tree_that_reaches_all_that_can_be_reached(
    brokers: int, density: float, seed: int, data: st.DataObject
) -> None:
    graph = nx.gnp_random_graph(brokers, density, seed=seed)
    delays = [data.draw(st.sampled_from([0.0, 0.001, 0.01, 0.5])) for _ in graph.edges]
    links = [(f"b{a}", f"b{b}", s) for (a, b), s in zip(graph.edges, delays, strict=True)]
    reached = {f"b{n}" for n in nx.node_connected_component(graph, 0)} - {"b0"}
    names = [f"b{n}" for n in range(1, brokers)]
    for plan in turns(Balanced(), a_view("b0", *links), *names):
        assert plan.keys() == reached
        steps = {step for path in plan.values() for step in pairwise(path)}
        assert all(path[0] == "b0" and len(set(path)) == len(path) for path in plan.values())
        assert all(graph.has_edge(int(a[1:]), int(b[1:])) for a, b in steps)
        assert len(steps) == len(reached)  # one way into each broker: a tree


# ---- the layers of the bounded-delay paper


@pytest.mark.parametrize("seed", range(1, 6))
def test_sources_use_all_their_links_and_both_uplinks_of_the_last_layer(seed: int) -> None:
    overlay = layered((4, 4, 8, 16), Draws(seed))
    links = [(link.a, link.b, link.delay_s) for link in overlay.links]
    last = overlay.brokers[-16:]
    used: dict[str, set[tuple[str, str]]] = {}
    for strategy in ("balanced", "d-tree"):
        used[strategy] = set()
        for source in overlay.brokers[:4]:
            router, view = ROUTERS[strategy](Options()), a_view(source, *links)
            for _ in range(TREES):
                for hop in router.route(a_parcel(*last, path=(source,)), view, 0.0).hops:
                    used[strategy] |= {step for path in hop.plan for step in pairwise(path)}
                    used[strategy].add((source, hop.neighbour))
    uplinks = {(link.a, link.b) for link in overlay.links if link.b in last}
    first = {(link.a, link.b) for link in overlay.links if link.a in overlay.brokers[:4]}
    assert uplinks <= used["balanced"]
    assert first <= used["balanced"]
    assert not first <= used["d-tree"], "else there is nothing to balance"


# ---- on the way


def on_the_way(me: str, *, plan: tuple[tuple[str, ...], ...], down: tuple[str, ...] = ()) -> Paths:
    """Where a copy for b3 goes that has come from b1."""
    links = (*RING, ("b4", "b5", 0.01), ("b5", "b3", 0.01))
    parcel = replace(a_parcel("b3", path=("b1", me)), plan=plan)
    route = Balanced().route(parcel, a_view(me, *links, down=down), 0.0)
    assert all(hop.neighbour == hop.plan[0][hop.plan[0].index(me) + 1] for hop in route.hops)
    assert bool(route.stranded) == (not route.hops)
    return paths_of(route.hops)


def test_a_copy_follows_its_plan_even_where_another_way_is_shorter() -> None:
    plan = (("b1", "b4", "b5", "b3"),)
    assert on_the_way("b4", plan=plan) == {"b3": plan[0]}


def test_where_a_plan_is_broken_the_rest_is_planned_anew() -> None:
    plan = (("b1", "b4", "b3"),)
    assert on_the_way("b4", plan=plan, down=("b3",)) == {"b3": ("b4", "b5", "b3")}


def test_a_copy_never_returns_to_a_broker_that_has_held_it() -> None:
    assert on_the_way("b2", plan=(("b1", "b2", "b3"),), down=("b3",)) == {}


@pytest.mark.parametrize("plan", [(), ((),), (("b4",),), (("b1", "b3"),), (("b4", "b4", "b3"),)])
def test_a_plan_that_makes_no_sense_is_replaced(plan: tuple[tuple[str, ...], ...]) -> None:
    assert on_the_way("b4", plan=plan) == {"b3": ("b4", "b3")}


# ---- whole runs


def a_ring() -> Net:
    """Brokers around a ring of equal links, whose rate they know."""
    net, ends = Net(), [(a, b) for a, b, _ in RING]
    for name in ("b1", "b2", "b3", "b4"):
        near = [b if a == name else a for a, b in ends if name in (a, b)]
        known = dict.fromkeys(near, LinkEstimate(net.delay_s, 1.0, 1e-5))
        net.add(Broker(name, pinned(strategy="balanced"), known))
    for a, b in ends:
        net.connect(a, b)
    net.run(1.0)
    return net


def test_brokers_deliver_over_both_ways_and_once() -> None:
    net = a_ring()
    wish = net.subscribe("b3")
    net.run(1.0)
    sent = [net.publish("b1") for _ in range(6)]
    net.run(1.0)
    assert sorted(net.delivered) == [(wish, message) for message in sorted(sent)]
    assert len(net.frames(Data, "b1", "b2")) == len(net.frames(Data, "b1", "b4")) == 3


def test_after_a_link_failed_all_go_the_other_way() -> None:
    net = a_ring()
    wish = net.subscribe("b3")
    net.run(1.0)
    net.disconnect("b2", "b3")
    net.run(1.0)
    sent = [net.publish("b1") for _ in range(4)]
    net.run(1.0)
    assert sorted(net.delivered) == [(wish, message) for message in sorted(sent)]
    assert len(net.frames(Data, "b4", "b3")) == 4


def test_in_the_simulator_messages_take_the_same_turns() -> None:
    workload = {
        "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 5.0}],
        "subscriber": [{"broker": "b3", "topic": "t", "name": "s"}],
    }
    changes: dict[str, Any] = {"broker.strategy": "balanced", "broker.trace": "hops"}
    changes["links.ms_per_kbyte"] = [10.0, 10.0]
    links_ms = [[a, b, 10.0] for a, b, _ in RING]
    topology = {"kind": "listed", "links_ms": links_ms}
    _, tables = outcome(a_scenario(changes, topology=topology, workload=workload))
    assert served(tables) == wanted(tables) != set()
    rows = sorted(tables["forwarded"], key=lambda row: row["recorded_at"])
    simulated = [row["neighbour"] for row in rows if row["broker"] == "b1"]
    net = a_ring()
    net.subscribe("b3")
    net.run(1.0)
    for _ in simulated:
        net.publish("b1")
        net.run(0.2)
    sent = [to for _, a, to, frame in net.said if a == "b1" and isinstance(frame, Data)]
    assert simulated == sent


@pytest.mark.parametrize("estimates", ["pinned", "measured"])
@pytest.mark.parametrize("scheduling", ["fifo", "priced"])
def test_without_failures_all_is_delivered_in_a_mesh(estimates: str, scheduling: str) -> None:
    changes: dict[str, Any] = {
        "broker.strategy": "balanced",
        "broker.estimates": estimates,
        "broker.scheduling": scheduling,
        "topology.brokers": 6,
        "links.ms_per_kbyte": [5.0, 10.0],
    }
    _, tables = outcome(a_scenario(changes))
    assert served(tables) == wanted(tables) != set()
