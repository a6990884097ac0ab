"""What is left to try after a failure: known links say it, and graph searches of others agree."""

from itertools import pairwise
from random import Random

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import a_message, a_parcel
from support.values import replace
from support.views import a_view

from tidings.core.parcel import Parcel
from tidings.routing.base import View
from tidings.routing.dcrd.known_ways import KnownWays, Prospect
from tidings.routing.dcrd.router import Dcrd
from tidings.routing.options import DcrdOptions, Options

# a ─ b ─ s, where b has two leaves, and a ─ c ─ s is another way round.
LEAFY = (("a", "b"), ("b", "leaf1"), ("b", "leaf2"), ("b", "s"))
ROUND = (*LEAFY, ("a", "c"), ("c", "s"))


def seen_by(me: str, links: tuple[tuple[str, str], ...]) -> View:
    return a_view(me, *((a, b, 0.010) for a, b in links))


def a_search(*path: str, given_up: tuple[tuple[str, str], ...] = ()) -> Parcel:
    return replace(a_parcel("s", path=path, message=a_message()), given_up=given_up)


def prospect(parcel: Parcel, links: tuple[tuple[str, str], ...]) -> Prospect:
    return KnownWays().prospect("s", parcel, seen_by(parcel.path[-1], links))


def next_hops(parcel: Parcel, links: tuple[tuple[str, str], ...], search: str) -> list[str]:
    router = Dcrd(Options(dcrd=DcrdOptions(search=search)))  # type: ignore[arg-type]
    route = router.route(parcel, seen_by(parcel.path[-1], links), 0.0)
    return [hop.neighbour for hop in route.hops]


def test_dead_ends_are_left_out_and_so_is_the_way_back_where_nothing_is_left() -> None:
    lost = a_search("a", "b", given_up=(("b", "s"),))
    assert prospect(lost, LEAFY) == Prospect(frozenset({"s"}), any_way=False)
    assert next_hops(lost, LEAFY, "paper") == ["leaf1"]
    assert next_hops(lost, LEAFY, "pruned") == []


def test_where_there_is_another_way_round_a_message_goes_straight_back_to_it() -> None:
    lost = a_search("a", "b", given_up=(("b", "s"),))
    assert prospect(lost, ROUND) == Prospect(frozenset({"s", "c"}), any_way=True)
    assert next_hops(lost, ROUND, "paper") == ["leaf1"]
    assert next_hops(lost, ROUND, "pruned") == ["a"]
    assert next_hops(a_search("a", "b", "a", given_up=(("b", "s"),)), ROUND, "pruned") == ["c"]


def test_a_link_that_others_gave_up_is_known_to_be_dead_here_too() -> None:
    both = (("b", "s"), ("c", "s"))
    assert next_hops(a_search("a", "b", "a", "c", given_up=both), ROUND, "pruned") == []


def test_what_has_met_no_failure_is_not_judged() -> None:
    """Estimates may be incomplete at first; whoever is on the list is tried."""
    assert next_hops(a_search("a"), ROUND, "pruned") == next_hops(a_search("a"), ROUND, "paper")


def test_what_was_found_out_is_forgotten_when_the_view_changes() -> None:
    ways, view = KnownWays(), seen_by("b", LEAFY)
    lost = a_search("a", "b", given_up=(("b", "s"),))
    assert not ways.prospect("s", lost, view).any_way
    view.links, view.version = seen_by("b", ROUND).links, view.version + 1
    assert ways.prospect("s", lost, view).any_way


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 8), st.integers(0, 6), st.integers(0, 10**6))
def test_prospects_are_what_a_search_of_the_graph_finds(size: int, chords: int, seed: int) -> None:
    rng = Random(seed)
    names = [*(f"b{n}" for n in range(1, size)), "s"]
    graph = nx.DiGraph()
    for n in range(1, size):
        pair = names[n], names[rng.randrange(n)]
        graph.add_edges_from([pair, pair[::-1]])
    for _ in range(chords):
        pair = tuple(rng.sample(names, 2))
        graph.add_edges_from([pair, pair[::-1]])
    me, path = "b1", ["b1"]
    while rng.random() < 0.7:
        path.append(rng.choice([n for n in graph[path[-1]] if n != "s"] or ["b1"]))
    me = path[-1]
    given_up = tuple(edge for edge in graph.edges if rng.random() < 0.2)
    links = tuple((a, b) for a, b in graph.edges if a < b)
    found = prospect(a_search(*path, given_up=given_up), links)

    left = graph.copy()
    left.remove_edges_from(given_up)
    ahead = left.subgraph([n for n in graph if n not in path])
    assert found.onward == nx.ancestors(ahead, "s") | {"s"}
    left.remove_edges_from(list(pairwise(path)))
    assert found.any_way == nx.has_path(left, me, "s")
