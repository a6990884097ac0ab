"""`multipath`: every message twice, by two ways that share as little as possible."""

from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_data, a_message, a_parcel, connected
from support.scenarios import a_scenario, outcome, served, wanted
from support.values import replace
from support.views import a_view

from tidings.broker.frames import Data
from tidings.core.trace import Dropped
from tidings.routing import ROUTERS
from tidings.routing.base import Hop
from tidings.routing.options import Options
from tidings.routing.protocols import Router

Paths = tuple[tuple[str, ...], ...]
Copy = tuple[str, list[str], Paths]  # next hop, destinations, plan


def a_router() -> Router:
    return ROUTERS["multipath"](Options())


def copies(hops: tuple[Hop, ...]) -> list[Copy]:
    return [(hop.neighbour, [d.broker for d in hop.destinations], hop.plan) for hop in hops]


# Two ways around a ring: over b2 (fast) and over b4.
RING = (("b1", "b2", 0.01), ("b2", "b3", 0.01), ("b1", "b4", 0.02), ("b4", "b3", 0.02))
FAST, SLOW = ("b1", "b2", "b3"), ("b1", "b4", "b3")


# ---- at the publisher's broker


def test_two_copies_leave_by_two_ways_and_know_them_whole() -> None:
    route = a_router().route(a_parcel("b3"), a_view("b1", *RING), 0.0)
    assert copies(route.hops) == [("b2", ["b3"], (FAST,)), ("b4", ["b3"], (SLOW,))]
    assert route.stranded == ()


def test_a_destination_with_one_path_gets_one_copy() -> None:
    links = (("b1", "b2", 0.01), ("b2", "b3", 0.01))
    route = a_router().route(a_parcel("b3"), a_view("b1", *links), 0.0)
    assert copies(route.hops) == [("b2", ["b3"], (FAST,))]
    assert route.stranded == ()


def test_destinations_share_a_copy_but_first_and_second_copies_never_merge() -> None:
    route = a_router().route(a_parcel("b2", "b3", "b4"), a_view("b1", *RING), 0.0)
    around = ("b1", "b4", "b3", "b2"), ("b1", "b2", "b3", "b4")
    assert copies(route.hops) == [
        ("b2", ["b2", "b3"], (("b1", "b2"), FAST)),
        ("b4", ["b4"], (("b1", "b4"),)),
        ("b4", ["b2", "b3"], (around[0], SLOW)),
        ("b2", ["b4"], (around[1],)),
    ]


def test_a_destination_without_a_way_is_stranded_and_the_others_are_not() -> None:
    route = a_router().route(a_parcel("b9", "b3"), a_view("b1", *RING), 0.0)
    assert [d.broker for d in route.stranded] == ["b9"]
    assert [served for _, served, _ in copies(route.hops)] == [["b3"], ["b3"]]


def test_a_copy_whose_link_is_down_is_stranded_and_the_other_leaves() -> None:
    route = a_router().route(a_parcel("b3"), a_view("b1", *RING, down=("b2",)), 0.0)
    assert copies(route.hops) == [("b4", ["b3"], (SLOW,))]
    assert [d.broker for d in route.stranded] == ["b3"]


def test_who_loses_both_copies_is_stranded_once() -> None:
    route = a_router().route(a_parcel("b3"), a_view("b1", *RING, down=("b2", "b4")), 0.0)
    assert route.hops == ()
    assert [d.broker for d in route.stranded] == ["b3"]


def test_paths_are_chosen_anew_when_the_view_changes_and_only_then() -> None:
    view, router = a_view("b1", *RING), a_router()
    before = router.route(a_parcel("b3"), view, 0.0)
    view.links = a_view("b1", ("b1", "b3", 0.1)).links
    view.neighbours = ("b2", "b3", "b4")
    assert copies(router.route(a_parcel("b3"), view, 0.0).hops) == copies(before.hops)
    view.version += 1
    route = router.route(a_parcel("b3"), view, 0.0)
    assert copies(route.hops) == [("b3", ["b3"], (("b1", "b3"),))]


@pytest.mark.parametrize(("detours", "second"), [(4, ("b1", "b3")), (5, ("b1", "b2", "d2", "b3"))])
def test_the_second_path_is_among_the_five_shortest(detours: int, second: tuple[str, ...]) -> None:
    """All paths but the direct one, which is the longest, begin with the same link."""
    links = [("b1", "b2", 0.01), ("b1", "b3", 1.0)]
    for i in range(1, detours + 1):
        links += [("b2", f"d{i}", 0.01), (f"d{i}", "b3", 0.01 * i)]
    route = a_router().route(a_parcel("b3"), a_view("b1", *links), 0.0)
    assert [hop.plan for hop in route.hops] == [(("b1", "b2", "d1", "b3"),), (second,)]


@given(st.integers(3, 6), st.floats(0.4, 1.0), st.integers(0, 10**6), st.data())
def test_the_two_paths_are_those_that_enumeration_finds(
    brokers: int, density: float, seed: int, data: st.DataObject
) -> None:
    """Delays are multiples of 1/64, so that sums are exact and ties are many."""
    graph = nx.relabel_nodes(
        nx.gnp_random_graph(brokers, density, seed=seed), lambda n: f"b{n + 1}"
    )
    for a, b in graph.edges:
        graph[a][b]["weight"] = data.draw(st.integers(1, 4)) / 64
    links = [(a, b, d["weight"]) for a, b, d in graph.edges(data=True)]
    ranked = sorted(
        (nx.path_weight(graph, path, "weight"), len(path), tuple(path))
        for path in nx.all_simple_paths(graph, "b1", "b2")
    )
    expected: list[tuple[str, ...]] = [path for _, _, path in ranked[:1]]
    if len(ranked) > 1:
        first = {frozenset(step) for step in pairwise(expected[0])}
        shared = [
            (len(first & {frozenset(step) for step in pairwise(path)}), place, path)
            for place, (_, _, path) in enumerate(ranked[1:5])
        ]
        expected.append(min(shared)[2])
    route = a_router().route(a_parcel("b2"), a_view("b1", *links), 0.0)
    assert [hop.plan for hop in route.hops] == [(path,) for path in expected]
    assert [hop.neighbour for hop in route.hops] == [path[1] for path in expected]
    assert bool(route.stranded) == (not expected)


# ---- on the way


def on_the_way(me: str, *destinations: str, plan: Paths, held: tuple[str, ...]) -> list[Copy]:
    parcel = replace(a_parcel(*destinations, path=(*held, me)), plan=plan)
    route = a_router().route(parcel, a_view(me, *RING), 0.0)
    reached = {d.broker for hop in route.hops for d in hop.destinations}
    assert {d.broker for d in route.stranded} == set(destinations) - reached
    return copies(route.hops)


def test_a_copy_follows_its_plan_even_where_another_way_is_shorter() -> None:
    plan = (("b1", "b4", "b3", "b2"),)
    assert on_the_way("b4", "b2", plan=plan, held=("b1",)) == [("b3", ["b2"], plan)]
    assert on_the_way("b3", "b2", plan=plan, held=("b1", "b4")) == [("b2", ["b2"], plan)]


def test_where_paths_part_each_copy_keeps_its_own() -> None:
    links = (("b1", "b2", 0.1), ("b2", "b3", 0.1), ("b2", "b4", 0.1))
    plan = (("b1", "b2", "b3"), ("b1", "b2", "b4"))
    parcel = replace(a_parcel("b3", "b4", path=("b1", "b2")), plan=plan)
    route = a_router().route(parcel, a_view("b2", *links), 0.0)
    assert copies(route.hops) == [("b3", ["b3"], plan[:1]), ("b4", ["b4"], plan[1:])]


@pytest.mark.parametrize(
    "plan",
    [
        (),
        ((),),
        (("b1", "b4", "b2"),),  # to somebody else
        (("b1", "b2", "b3"),),  # not by way of the broker that holds it
        (("b1", "b4", "b9", "b3"),),  # over a link that is not there
        (("b1", "b4", "b1", "b3"),),  # back to a broker that has held it
        (("b4", "b4", "b3"),),  # in a circle
    ],
)
def test_a_plan_that_leads_nowhere_strands_the_copy(plan: Paths) -> None:
    assert on_the_way("b4", "b3", plan=plan, held=("b1",)) == []


def test_a_malformed_plan_from_the_wire_is_a_dropped_copy() -> None:
    net = connected(("b1", "b2"), ("b2", "b3"), strategy="multipath")
    frame = a_data(77, a_message(), "b3", strategy="multipath")
    for transmission, plan in enumerate([(), (("b3",),), (("b2", "b1", "b2", "b3"),)], 77):
        envelope = replace(frame.envelope, plan=plan, message=a_message())
        net.tell("b2", "receive", "b1", Data(transmission, envelope))
    assert {(row.broker, row.reason) for row in net.rows_of(Dropped)} == {("b2", "no-route")}
    assert len(net.rows_of(Dropped)) == 3


def test_what_failed_is_lost() -> None:
    parcel = a_parcel("b2", "b3")
    route = a_router().reroute(parcel, "b2", a_view("b1", *RING), 0.0)
    assert (route.hops, route.stranded) == ((), parcel.destinations)


# ---- whole runs


AROUND: dict[str, Any] = {
    "topology": {"kind": "listed", "links_ms": [[a, b, s * 1000] for a, b, s in RING]},
    "workload": {
        "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 5.0}],
        "subscriber": [{"broker": "b3", "topic": "t", "name": "s"}],
    },
}


@pytest.mark.parametrize("estimates", ["pinned", "measured"])
def test_without_failures_exactly_two_copies_travel_and_one_is_delivered(estimates: str) -> None:
    changes = {"broker.strategy": "multipath", "broker.estimates": estimates}
    result, tables = outcome(a_scenario(changes, **AROUND))
    assert served(tables) == wanted(tables) != set()
    assert result.deliveries == result.publications
    assert result.hops == 4 * result.publications  # two copies, two links each
    assert {round(row["age_s"], 9) for row in tables["delivered"]} == {0.02}


@pytest.mark.parametrize(("link", "age_s"), [(["b2", "b3"], 0.04), (["b1", "b4"], 0.02)])
def test_when_one_of_two_ways_fails_the_other_copy_arrives(link: list[str], age_s: float) -> None:
    faults = {"schedule": [{"from_s": 0.5, "to_s": 9.0, "link": link}]}
    _, tables = outcome(a_scenario({"broker.strategy": "multipath"}, faults=faults, **AROUND))
    assert served(tables) == wanted(tables) != set()
    assert {round(row["age_s"], 9) for row in tables["delivered"]} == {age_s}
    assert {row["reason"] for row in tables["dropped"]} == {"unacknowledged"}


def test_when_both_ways_fail_the_message_is_lost() -> None:
    links = [["b1", "b2"], ["b4", "b3"]]
    faults = {"schedule": [{"from_s": 0.5, "to_s": 9.0, "link": link} for link in links]}
    _, tables = outcome(a_scenario({"broker.strategy": "multipath"}, faults=faults, **AROUND))
    assert served(tables) == set() != wanted(tables)


def test_a_destination_that_got_one_copy_still_passes_the_other_on() -> None:
    """b2 lies on both copies to b3 when there is no other way to leave b1."""
    links = (("b1", "b2"), ("b2", "b3"), ("b2", "b4"), ("b4", "b3"))
    net = connected(*links, strategy="multipath")
    wishes = [net.subscribe(name) for name in ("b2", "b3")]
    net.run(1.0)
    message = net.publish("b1")
    net.run(1.0)
    assert sorted(net.delivered) == sorted((wish, message) for wish in wishes)
    assert len(net.frames(Data, "b1", "b2")) == 2
    assert len(net.frames(Data, receiver="b3")) == 2
