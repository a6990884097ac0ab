"""`best-path`, `qos-path`, `qos-multipath`: what leaves the source, and what others do with it."""

from collections import deque
from itertools import pairwise
from math import inf
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import (
    START,
    a_broker,
    a_data,
    a_destination,
    a_message,
    a_parcel,
    a_subscription,
    connected,
    rows,
    sends,
)
from support.values import replace
from support.views import a_view

from tidings.broker.effects import Warn
from tidings.broker.frames import Data
from tidings.core.message import Budget
from tidings.core.parcel import Parcel
from tidings.core.trace import Dropped, Reason
from tidings.routing import ROUTERS
from tidings.routing.base import Hop, Route
from tidings.routing.harmony.router import Harmony
from tidings.routing.options import HarmonyOptions, Options
from tidings.routing.protocols import Router

STRATEGIES = ("best-path", "qos-path", "qos-multipath")
Paths = tuple[tuple[str, ...], ...]

# From b1 to b3: over b2 (20 ms), over b4 (40 ms), or straight (100 ms).
SQUARE = (
    ("b1", "b2", 0.01),
    ("b2", "b3", 0.01),
    ("b1", "b4", 0.02),
    ("b4", "b3", 0.02),
    ("b1", "b3", 0.1),
)
FAST, SLOW, STRAIGHT = ("b1", "b2", "b3"), ("b1", "b4", "b3"), ("b1", "b3")


def a_router(strategy: str, **harmony: Any) -> Router:
    return ROUTERS[strategy](Options(harmony=HarmonyOptions(**harmony)))


def copies(route: Route) -> list[tuple[str, list[str], Paths]]:
    return [(hop.neighbour, [d.broker for d in hop.destinations], hop.plan) for hop in route.hops]


def stranded(route: Route) -> list[str]:
    return [destination.broker for destination in route.stranded]


# ---- at the source


@pytest.mark.parametrize("strategy", ["best-path", "qos-path"])
def test_a_message_leaves_by_the_shortest_path_and_knows_it_whole(strategy: str) -> None:
    route = a_router(strategy).route(a_parcel("b3"), a_view("b1", *SQUARE), 0.0)
    assert copies(route) == [("b2", ["b3"], (FAST,))]
    assert (route.stranded, route.warning) == ((), "")


def test_only_where_there_is_a_deadline_to_keep_are_budgets_carried() -> None:
    parcel = a_parcel(a_destination("b3", (0.060, 1)))
    view = a_view("b1", *SQUARE)
    [hop] = a_router("qos-path").route(parcel, view, 0.0).hops
    assert hop.budgets == (Budget("b3", pytest.approx(0.020), (0.01, 0.01)),)
    [hop] = a_router("best-path").route(parcel, view, 0.0).hops
    assert hop.budgets == ()
    [hop] = a_router("qos-path").route(a_parcel("b3"), view, 0.0).hops
    assert hop.budgets == ()


def test_with_several_paths_each_copy_carries_its_own_plan_and_budget() -> None:
    parcel = a_parcel(a_destination("b3", (0.060, 1)))
    route = a_router("qos-multipath").route(parcel, a_view("b1", *SQUARE), 0.0)
    assert copies(route) == [("b2", ["b3"], (FAST,)), ("b4", ["b3"], (SLOW,))]
    shares_s = [[b.share_s for b in hop.budgets] for hop in route.hops]
    assert shares_s == [pytest.approx([0.020]), pytest.approx([0.010])]


def test_destinations_share_copies_but_first_and_second_copies_never_merge() -> None:
    owed = (a_destination("b2", (0.2, 1)), a_destination("b3", (0.2, 1)))
    route = a_router("qos-multipath").route(a_parcel(*owed), a_view("b1", *SQUARE), 0.0)
    first = route.hops[0]
    assert (first.neighbour, [b.destination for b in first.budgets]) == ("b2", ["b2", "b3"])
    served = [d.broker for hop in route.hops for d in hop.destinations]
    assert sorted(served) == ["b2", "b2", "b3", "b3"]
    for hop in route.hops:
        assert [path[-1] for path in hop.plan] == [d.broker for d in hop.destinations]
        assert [b.destination for b in hop.budgets] == [d.broker for d in hop.destinations]
        for path, given_out in zip(hop.plan, hop.budgets, strict=True):
            assert path[:2] == ("b1", hop.neighbour)
            assert len(given_out.expected_s) == len(path) - 1


def test_an_availability_asks_for_as_many_copies_as_it_takes() -> None:
    """All parts work with 0.99: the straight link alone, or two or three ways."""
    view = a_view("b1", *SQUARE)
    for level, count in ((0.9, 1), (0.995, 2), (0.99999, 3)):
        parcel = a_parcel(replace(a_destination("b3"), availability=level))
        route = a_router("qos-multipath", failures="equal").route(parcel, view, 0.0)
        assert len(route.hops) == count
        assert not stranded(route)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_who_cannot_be_reached_is_stranded_with_a_word_and_the_others_are_not(
    strategy: str,
) -> None:
    router, view = a_router(strategy), a_view("b1", *SQUARE)
    route = router.route(a_parcel("b9", "b3"), view, 0.0)
    assert stranded(route) == ["b9"]
    assert "b9" in route.warning
    assert {d.broker for hop in route.hops for d in hop.destinations} == {"b3"}
    again = router.route(a_parcel("b9", "b3"), view, 1.0)
    assert (stranded(again), again.warning) == (["b9"], "")


@pytest.mark.parametrize("strategy", ["qos-path", "qos-multipath"])
def test_an_impossible_deadline_is_told_once_and_the_message_leaves(strategy: str) -> None:
    router, view = a_router(strategy), a_view("b1", *SQUARE)
    owed = a_destination("b3", (0.001, 1))
    route = router.route(a_parcel(owed), view, 0.0)
    assert copies(route)[0] == ("b2", ["b3"], (FAST,))
    assert "deadline" in route.warning
    assert router.route(a_parcel(owed), view, 1.0).warning == ""


def test_with_all_links_down_everybody_is_stranded() -> None:
    for strategy in STRATEGIES:
        view = a_view("b1", *SQUARE, down=("b2", "b3", "b4"))
        route = a_router(strategy).route(a_parcel("b3", "b2"), view, 0.0)
        assert (route.hops, stranded(route)) == ((), ["b3", "b2"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_who_cannot_be_sent_to_after_all_is_stranded_and_does_not_vanish(strategy: str) -> None:
    """A link that went down without another version of the view: flows still count on it."""
    router, view = a_router(strategy), a_view("b1", *SQUARE)
    router.route(a_parcel("b3", "b9"), view, 0.0)
    view.neighbours = ()
    route = router.route(a_parcel("b3", "b9"), view, 1.0)
    assert (route.hops, sorted(stranded(route))) == ((), ["b3", "b9"])


# ---- on the way


def on_the_way(
    me: str, *destinations: str, plan: Paths, held: tuple[str, ...], **options: Any
) -> Route:
    parcel = replace(a_parcel(*destinations, path=(*held, me)), plan=plan)
    down = options.pop("down", ())
    route = a_router("qos-multipath", **options).route(parcel, a_view(me, *SQUARE, down=down), 0.0)
    served = [d.broker for hop in route.hops for d in hop.destinations]
    assert sorted(served + stranded(route)) == sorted(destinations)
    return route


def test_brokers_on_the_way_follow_the_plan_even_where_another_way_is_shorter() -> None:
    plan = (("b1", "b4", "b3", "b2"),)
    for me, held, onward in (("b4", ("b1",), "b3"), ("b3", ("b1", "b4"), "b2")):
        assert copies(on_the_way(me, "b2", plan=plan, held=held)) == [(onward, ["b2"], plan)]


def test_where_paths_part_each_copy_keeps_its_own() -> None:
    plan = (("b1", "b4", "b3"), ("b1", "b4", "b1", "b2"))
    route = on_the_way("b4", "b3", "b2", plan=plan, held=("b1",))
    assert copies(route) == [("b3", ["b3"], plan[:1]), ("b1", ["b2"], plan[1:])]


NONSENSE: list[Paths] = [
    (),
    ((),),
    ((), ("b3",)),
    (("b3",),),
    (("b1", "b2"),),  # to somebody else
    (("b1", "b2", "b3"),),  # not by way of the broker that holds it
    (("b1", "b4", "b9", "b3"),),  # over a link that is not there
    (("b4", "b4", "b3"),),  # in a circle
    (("b1", "b4", "b4", "b3"),),
    (("", "\x00", "b3"),),
]


@pytest.mark.parametrize("plan", NONSENSE)
def test_a_plan_that_leads_nowhere_strands_the_copy_or_is_replaced(plan: Paths) -> None:
    assert on_the_way("b4", "b3", plan=plan, held=("b1",)).hops == ()
    around = on_the_way("b4", "b3", plan=plan, held=("b1",), reroute=True)
    assert copies(around) == [("b3", ["b3"], (("b4", "b3"),))]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "budgets",
    [
        (Budget("b3", 0.1, ()),),
        (Budget("b3", inf, (inf, inf, inf)),),
        (Budget("b9", 0.1, (0.1,)),),
        (Budget("", 0.0, ()), Budget("b3", 0.0, (0.0,)), Budget("b3", 0.0, (0.0,))),
    ],
)
def test_nonsense_from_the_wire_is_dropped_or_carried_and_does_no_harm(
    strategy: str, budgets: tuple[Budget, ...]
) -> None:
    """Each plan comes in over b1, with budgets that do not fit; the broker goes on as before."""
    net = connected(
        ("b1", "b2"), ("b2", "b3"), strategy=strategy, scheduling="urgency", estimates="measured"
    )
    wish = net.subscribe("b3")
    net.run(1.0)
    plans: list[Paths] = [*NONSENSE, (("b2", "b3"),), (("b1", "b2", "b1", "b2", "b3"),)]
    for serial, plan in enumerate(plans, start=1 << 40):
        for path in ((), ("b1",), ("b3", "b2", "b1"), ("b2", "b3", "b2")):
            owed = a_destination("b3", (0.05, 1))
            frame = a_data(serial, a_message(), owed, owed, path=path, strategy=strategy)
            envelope = replace(frame.envelope, plan=plan, budgets=budgets)
            net.tell("b2", "receive", "b1", Data(serial * 8 + len(path), envelope))
    net.run(5.0)
    net.delivered.clear()
    message = net.publish("b1", deadline_s=1.0)
    net.run(1.0)
    assert net.delivered == [(wish, message)]
    assert len(net.frames(Data)) < 500  # nothing goes in circles


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_broker_that_is_named_twice_among_the_destinations_does_no_harm(strategy: str) -> None:
    net = connected(("b1", "b2"), ("b2", "b3"), strategy=strategy, exhausted="drop")
    mine = [a_destination("b2", (deadline_s, 1)) for deadline_s in (0.5, 0.6)]
    net.tell("b2", "receive", "b1", a_data(7, a_message(), *mine, path=(), strategy=strategy))
    reasons = [row.reason for row in net.rows_of(Dropped)]
    assert reasons == [Reason.UNWANTED, Reason.NO_ROUTE]


# ---- around what is broken


def test_without_reroute_what_failed_is_lost() -> None:
    for strategy in STRATEGIES:
        parcel = replace(a_parcel("b3"), given_up=(("b1", "b2"),), plan=(FAST,))
        route = a_router(strategy).reroute(parcel, "b2", a_view("b1", *SQUARE), 0.0)
        assert (route.hops, route.stranded) == ((), parcel.destinations)
    assert stranded(on_the_way("b2", "b3", plan=(FAST,), held=("b1",), down=("b3",))) == ["b3"]


def test_with_reroute_it_goes_by_the_next_best_way_at_once() -> None:
    parcel = replace(a_parcel("b3"), given_up=(("b1", "b2"),), plan=(FAST,))
    route = a_router("best-path", reroute=True).reroute(parcel, "b2", a_view("b1", *SQUARE), 0.0)
    assert copies(route) == [("b4", ["b3"], (SLOW,))]


def test_with_reroute_a_link_of_the_plan_that_is_known_to_be_down_is_gone_around() -> None:
    links = (*SQUARE, ("b2", "b4", 0.01))
    parcel = replace(a_parcel("b3", path=("b1", "b2")), plan=(FAST,))
    view = a_view("b2", *links, down=("b3",))
    route = a_router("best-path", reroute=True).route(parcel, view, 0.0)
    assert copies(route) == [("b4", ["b3"], (("b2", "b4", "b3"),))]


def test_where_nothing_is_left_it_is_exhausted() -> None:
    given_up = (("b1", "b2"), ("b1", "b3"), ("b1", "b4"))
    parcel = replace(a_parcel("b3"), given_up=given_up, plan=(FAST,))
    route = a_router("best-path", reroute=True).reroute(parcel, "b4", a_view("b1", *SQUARE), 0.0)
    assert (route.hops, stranded(route), route.reason) == ((), ["b3"], Reason.EXHAUSTED)


class Overlay:
    """Routers of all brokers on a graph with dead links, and parcels that are walked through it.
    All believe what the graph says; `knows`: the ends of a dead link have noticed."""

    def __init__(self, graph: nx.Graph, dead: set[frozenset[str]], knows: bool, **how: Any) -> None:
        self.dead, self.crossed, self.delivered = dead, list[tuple[str, str]](), set[str]()
        self.lost: list[str] = []
        strategy = how.pop("strategy")
        links = [(a, b, d["weight"]) for a, b, d in graph.edges(data=True)]
        self.routers: dict[str, Router] = {n: a_router(strategy, **how) for n in graph}
        self.views = {}
        for name in graph:
            noticed = [b for b in graph[name] if knows and frozenset((name, b)) in dead]
            self.views[name] = a_view(name, *links, down=tuple(noticed))
        self.waiting: deque[tuple[str, Hop, Parcel]] = deque()

    def publish(self, *destinations: str) -> None:
        self._route("b1", a_parcel(*destinations))
        while self.waiting:
            here, hop, parcel = self.waiting.popleft()
            copy = replace(
                parcel,
                destinations=hop.destinations,
                plan=hop.plan or parcel.plan,
                budgets=hop.budgets or parcel.budgets,
            )
            if frozenset((here, hop.neighbour)) in self.dead:
                failed = replace(copy, given_up=(*copy.given_up, (here, hop.neighbour)))
                view = self.views[here]
                found = self.routers[here].reroute(failed, hop.neighbour, view, 0.0)
                self._follow(here, found, failed)
            else:
                self._arrive(hop.neighbour, here, copy)

    def _arrive(self, here: str, before: str, copy: Parcel) -> None:
        self.crossed.append((before, here))
        assert len(self.crossed) < 2_000, "it does not end"
        owed = tuple(d for d in copy.destinations if d.broker != here)
        if len(owed) < len(copy.destinations):
            self.delivered.add(here)
        if owed:
            self._route(here, replace(copy, destinations=owed, path=(*copy.path, here)))

    def _route(self, here: str, parcel: Parcel) -> None:
        steps = list(pairwise(parcel.path))
        assert len(set(steps)) == len(steps), "a link was crossed twice in one direction"
        self._follow(here, self.routers[here].route(parcel, self.views[here], 0.0), parcel)

    def _follow(self, here: str, route: Route, parcel: Parcel) -> None:
        up = self.views[here].neighbours
        served = [d.broker for hop in route.hops for d in hop.destinations]
        assert all(hop.neighbour in up for hop in route.hops)
        assert set(served) | set(stranded(route)) == {d.broker for d in parcel.destinations}
        self.waiting.extend((here, hop, parcel) for hop in route.hops)
        self.lost += stranded(route)


@st.composite
def broken_overlays(draw: st.DrawFn) -> tuple[nx.Graph, set[frozenset[str]]]:
    size, density = draw(st.integers(3, 7)), draw(st.floats(0.3, 1.0))
    graph = nx.gnp_random_graph(size, density, seed=draw(st.integers(0, 10**6)))
    graph = nx.relabel_nodes(graph, lambda n: f"b{n + 1}")
    for a, b in graph.edges:
        graph[a][b]["weight"] = draw(st.integers(1, 12)) / 64
    links = sorted(map(sorted, graph.edges))
    dead = draw(st.lists(st.sampled_from(links), unique_by=tuple)) if links else []
    return graph, {frozenset(link) for link in dead}


def reachable(graph: nx.Graph, dead: set[frozenset[str]]) -> set[str]:
    alive = graph.copy()
    alive.remove_edges_from([tuple(link) for link in dead])
    return set(nx.node_connected_component(alive, "b1")) - {"b1"}


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=150)
@given(broken_overlays(), st.booleans())
def test_with_reroute_a_message_ends_and_arrives_whenever_working_links_lead_there(
    strategy: str, broken: tuple[nx.Graph, set[frozenset[str]]], knows: bool
) -> None:
    graph, dead = broken
    overlay = Overlay(graph, dead, knows, strategy=strategy, reroute=True)
    overlay.publish(*sorted(set(graph) - {"b1"}))
    assert overlay.delivered == reachable(graph, dead)
    assert set(graph) - {"b1"} <= overlay.delivered | set(overlay.lost)


@settings(max_examples=60)
@given(broken_overlays(), st.booleans())
def test_without_reroute_every_copy_takes_its_plan_or_is_lost(
    broken: tuple[nx.Graph, set[frozenset[str]]], knows: bool
) -> None:
    graph, dead = broken
    overlay = Overlay(graph, dead, knows, strategy="best-path")
    overlay.publish(*sorted(set(graph) - {"b1"}))
    assert overlay.delivered <= reachable(graph, dead)
    assert overlay.delivered | set(overlay.lost) == set(graph) - {"b1"}
    assert not overlay.delivered & set(overlay.lost)
    assert len(set(overlay.crossed)) == len(overlay.crossed)  # as in a tree
    if not dead:
        assert overlay.lost == sorted(set(graph) - {"b1"} - reachable(graph, dead))


def test_a_message_that_failed_elsewhere_may_pass_by_its_source_again() -> None:
    """b2 is a dead end once its link to b3 is: the way on leads back over b1."""
    graph = nx.Graph()
    graph.add_weighted_edges_from(SQUARE[:4])
    overlay = Overlay(graph, {frozenset(("b2", "b3"))}, False, strategy="best-path", reroute=True)
    overlay.publish("b3")
    assert overlay.delivered == {"b3"}
    assert overlay.crossed == [("b1", "b2"), ("b2", "b1"), ("b1", "b4"), ("b4", "b3")]


def test_it_goes_on_from_where_it_is_before_it_goes_back() -> None:
    """Back over b1 would be shorter, but what was not tried at b2 could not be tried again: the
    link from b1 to b2 would have been crossed."""
    graph = nx.Graph()
    graph.add_weighted_edges_from([("b1", "b2", 1), ("b2", "b3", 1), ("b1", "b4", 1)])
    graph.add_weighted_edges_from([("b4", "b3", 1), ("b2", "b5", 9), ("b5", "b3", 9)])
    dead = {frozenset(("b2", "b3")), frozenset(("b4", "b3"))}
    overlay = Overlay(graph, dead, False, strategy="best-path", reroute=True)
    overlay.publish("b3")
    assert overlay.crossed == [("b1", "b2"), ("b2", "b5"), ("b5", "b3")]


def test_where_the_way_back_is_cut_it_goes_by_any_other() -> None:
    """b1 → b2 → b4, and then all links of b4 but the one to b1 are dead."""
    links = (*SQUARE, ("b2", "b4", 0.01))
    given_up = (("b4", "b3"), ("b4", "b2"))
    parcel = replace(a_parcel("b3", path=("b1", "b2", "b4")), given_up=given_up)
    route = a_router("best-path", reroute=True).reroute(parcel, "b2", a_view("b4", *links), 0.0)
    assert copies(route) == [("b1", ["b3"], (("b4", "b1", "b3"),))]


def test_every_version_is_one_router_with_two_switches() -> None:
    assert all(isinstance(a_router(strategy), Harmony) for strategy in STRATEGIES)


# ---- through a broker


def test_trouble_of_a_flow_is_told_to_whoever_runs_the_broker_and_once() -> None:
    wishes = [a_subscription("b2"), a_subscription("b9", "far")]
    broker = a_broker("b1", ("b2",), wishes, strategy="qos-path", exhausted="drop")
    for expected in (["No path to b2 meets its deadline", "No path to b9"], []):
        effects = broker.publish(a_message(deadline_s=0.001), START)
        warning = " ".join(effect.text for effect in effects if isinstance(effect, Warn))
        assert all(words in warning for words in expected)
        assert bool(warning) == bool(expected)
        assert [neighbour for neighbour, _ in sends(effects)] == ["b2"]
        assert [row.destinations for row in rows(effects, Dropped)] == [("b9",)]
