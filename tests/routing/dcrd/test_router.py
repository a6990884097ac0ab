"""`dcrd`: single decisions of one broker, with parcels made by hand."""

from itertools import pairwise
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import a_destination, a_message

from tidings.core.contract import Destination
from tidings.core.links.estimates import LinkEstimate
from tidings.core.parcel import Parcel, expiry
from tidings.core.trace import Reason
from tidings.routing.base import Route, View
from tidings.routing.dcrd.router import Dcrd
from tidings.routing.options import DcrdOptions, Options

NOW = 100.0
LINK_S = 0.010

# What each neighbour of `me` says of its own delay to each destination.
ADVERTISED = {
    "a": {"s": 0.010, "t": 0.010, "u": 0.300},
    "b": {"s": 0.020, "t": 0.020, "u": 0.010},
    "c": {"s": 0.300, "t": 0.300, "u": 0.400},
}


def a_view(*neighbours: str) -> View:
    """`me`, its neighbours, and behind all of them the destinations."""
    view, link = View("me"), LinkEstimate(LINK_S)
    view.links = {"me": dict.fromkeys(neighbours, link)}
    view.links |= {n: dict.fromkeys(("me", "s", "t", "u"), link) for n in neighbours}
    view.neighbours, view.version = neighbours, 1
    return view


def a_router(**dcrd: Any) -> Dcrd:
    """One that has heard what the neighbours advertise."""
    router = Dcrd(Options(dcrd=DcrdOptions(**dcrd)))
    for name, pairs in ADVERTISED.items():
        news = [[destination, "", inf, delay_s, 1.0] for destination, delay_s in pairs.items()]
        router.hear(name, msgspec.msgpack.encode(news), 1, a_view("a", "b", "c"))
    return router


def a_parcel(
    *destinations: Destination | str,
    path: tuple[str, ...] = ("me",),
    given_up: tuple[tuple[str, str], ...] = (),
    age_s: float = 0.0,
) -> Parcel:
    owed = tuple(d if isinstance(d, Destination) else a_destination(d) for d in destinations)
    born_at = NOW - age_s
    expires_at = expiry(born_at, owed)
    return Parcel(a_message(), born_at, expires_at, owed, path, "dcrd", 100, given_up)


def routed(parcel: Parcel, view: View | None = None) -> Route:
    return a_router().route(parcel, view or a_view("a", "b", "c"), NOW)


def hops(route: Route) -> dict[str, list[str]]:
    return {hop.neighbour: [d.broker for d in hop.destinations] for hop in route.hops}


def stranded(route: Route) -> list[str]:
    return [destination.broker for destination in route.stranded]


# ---- down the list


@pytest.mark.parametrize(
    ("path", "next_hop"),
    [
        (("me",), "a"),
        (("a", "me"), "b"),
        (("b", "me"), "a"),
        (("x", "a", "b", "me"), "c"),
        (("me", "a", "me"), "b"),
        (("me", "b", "a", "me"), "c"),
    ],
)
def test_a_message_goes_to_the_first_on_the_list_that_has_not_held_it(
    path: tuple[str, ...], next_hop: str
) -> None:
    assert hops(routed(a_parcel("s", path=path))) == {next_hop: ["s"]}


def test_destinations_that_share_a_next_hop_share_one_copy() -> None:
    parcel = a_parcel("s", "u", "t")
    route = routed(parcel)
    assert hops(route) == {"a": ["s", "t"], "b": ["u"]}
    assert route.stranded == ()
    assert hops(routed(a_parcel("s", "u", "t", path=("me", "a", "me")))) == {"b": ["s", "u", "t"]}


def test_a_neighbour_that_this_broker_gave_up_is_not_tried_again() -> None:
    assert hops(routed(a_parcel("s", given_up=(("me", "a"),)))) == {"b": ["s"]}
    assert hops(routed(a_parcel("s", given_up=(("me", "a"), ("me", "b"))))) == {"c": ["s"]}


def test_a_neighbour_that_another_broker_gave_up_may_be_tried_from_here() -> None:
    parcel = a_parcel("s", path=("x", "me"), given_up=(("x", "a"), ("a", "me"), ("b", "a")))
    assert hops(routed(parcel)) == {"a": ["s"]}


def test_after_silence_the_next_on_the_list_gets_it_by_what_the_parcel_says() -> None:
    router, view = a_router(), a_view("a", "b", "c")
    parcel = a_parcel("s", "u", given_up=(("me", "a"),))
    assert hops(router.reroute(parcel, "a", view, NOW)) == {"b": ["s", "u"]}
    again = a_parcel("s", "u", given_up=(("me", "a"), ("me", "b")))
    assert hops(router.reroute(again, "b", view, NOW)) == {"c": ["s", "u"]}


def test_a_neighbour_whose_link_is_down_is_not_tried() -> None:
    router = a_router()
    assert hops(router.route(a_parcel("s"), a_view("a", "b", "c"), NOW)) == {"a": ["s"]}
    view = a_view("b", "c")
    view.version = 2
    assert hops(router.route(a_parcel("s"), view, NOW)) == {"b": ["s"]}


# ---- deadlines


def test_a_late_neighbour_goes_behind_one_that_is_in_time() -> None:
    """b is expected to be in time to the last instant, a is first by expectation but late."""
    router, view = Dcrd(Options(transmissions=1)), a_view("a", "b")
    lossy = LinkEstimate(LINK_S, 0.1)
    view.links = {**view.links, "me": {"a": LinkEstimate(LINK_S), "b": lossy}}
    for name, delay_s in (("a", 0.050), ("b", 0.020)):
        router.hear(name, msgspec.msgpack.encode([["s", "", inf, delay_s, 1.0]]), 1, view)
    for age_s, expected in ((0.0, "a"), (0.049, "a"), (0.051, "b"), (0.079, "b"), (0.081, "a")):
        owed = a_destination("s", (0.100, 1))
        route = router.route(a_parcel(owed, age_s=age_s), view, NOW)
        assert hops(route) == {expected: ["s"]}, age_s


def test_the_strictest_deadline_at_a_destination_decides() -> None:
    owed = a_destination("u", (0.050, 1), (9.0, 5))
    assert hops(routed(a_parcel(owed, path=("b", "me")))) == {"a": ["u"]}  # both late: the best
    router, view = a_router(), a_view("a", "b", "c")
    strict = a_parcel(a_destination("s", (0.015, 1), (9.0, 5)), path=("a", "me"))
    assert hops(router.route(strict, view, NOW)) == {"b": ["s"]}


def test_a_deadline_that_nobody_can_meet_changes_nothing_about_the_order() -> None:
    for age_s in (0.0, 5.0):
        owed = a_destination("s", (1e-6, 1))
        assert hops(routed(a_parcel(owed, age_s=age_s))) == {"a": ["s"]}
        again = a_parcel(owed, age_s=age_s, given_up=(("me", "a"),))
        assert hops(routed(again)) == {"b": ["s"]}


# ---- back


@pytest.mark.parametrize(
    "path",
    [
        ("x", "a", "me"),  # c and b given up below
        ("x", "a", "me", "b", "me"),
        ("x", "a", "me", "b", "me", "c", "me"),
        ("x", "a", "me", "b", "y", "b", "me"),
    ],
)
def test_when_none_is_left_it_goes_back_to_whom_it_came_from_first(path: tuple[str, ...]) -> None:
    parcel = a_parcel("s", path=path, given_up=(("me", "b"), ("me", "c")))
    assert hops(routed(parcel)) == {"a": ["s"]}


def test_it_goes_back_to_whom_it_came_from_and_not_to_others_that_held_it_meanwhile() -> None:
    parcel = a_parcel("s", path=("x", "a", "me", "b", "c", "b", "me"))
    assert hops(routed(parcel)) == {"a": ["s"]}


def test_some_destinations_go_back_while_others_go_on() -> None:
    view = a_view("a", "b", "c")
    router = Dcrd(Options(dcrd=DcrdOptions(filter="paper")))  # lists without a last resort
    news = msgspec.msgpack.encode([["s", "", inf, 0.1, 1.0]])
    router.hear("b", news, 1, view)
    route = router.route(a_parcel("s", "t", path=("a", "me")), view, NOW)
    assert hops(route) == {"b": ["s"], "a": ["t"]}


def test_where_the_way_back_failed_another_that_held_it_may_go_on() -> None:
    """The last that held it first; never one that this broker has handed it to already."""
    path = ("a", "b", "c", "me")
    assert hops(routed(a_parcel("s", path=path))) == {"c": ["s"]}
    failed = a_parcel("s", path=path, given_up=(("me", "c"),))
    assert hops(routed(failed)) == {"b": ["s"]}
    both = a_parcel("s", path=path, given_up=(("me", "c"), ("me", "b")))
    assert hops(routed(both)) == {"a": ["s"]}
    visited = a_parcel("s", path=("a", "c", "me", "b", "me"), given_up=(("me", "c"),))
    assert hops(routed(visited)) == {"a": ["s"]}


def test_the_way_back_is_not_taken_over_a_link_that_is_down() -> None:
    assert hops(routed(a_parcel("s", path=("a", "b", "me")), a_view("a"))) == {"a": ["s"]}


def test_where_nobody_is_left_at_all_it_is_exhausted_here() -> None:
    given_up = (("me", "a"), ("me", "b"), ("me", "c"))
    route = routed(a_parcel("s", "t", path=("a", "b", "c", "me"), given_up=given_up))
    assert (hops(route), stranded(route), route.reason) == ({}, ["s", "t"], Reason.EXHAUSTED)


def test_a_source_with_nothing_left_says_that_it_is_exhausted() -> None:
    given_up = (("me", "a"), ("me", "b"), ("me", "c"))
    for parcel in (
        a_parcel("s", given_up=given_up),
        a_parcel("s", path=("me", "a", "me"), given_up=given_up[1:]),
        a_parcel("s", path=("me", "a", "me", "b", "me", "c", "me")),
    ):
        route = routed(parcel)
        assert (hops(route), stranded(route), route.reason) == ({}, ["s"], Reason.EXHAUSTED)


def test_a_destination_that_no_links_lead_to_is_stranded_and_nothing_was_exhausted() -> None:
    route = routed(a_parcel("nowhere", "s"))
    assert (hops(route), stranded(route), route.reason) == ({"a": ["s"]}, ["nowhere"], "")


# ---- the laws of the search


@given(
    st.lists(st.sampled_from(["a", "b", "c", "x", "me"]), max_size=8),
    st.sets(st.tuples(st.sampled_from(["me", "a", "b"]), st.sampled_from(["a", "b", "c"]))),
    st.sets(st.sampled_from(["a", "b", "c"])),
)
def test_no_decision_repeats_a_step_or_uses_a_link_that_is_down_or_was_given_up(
    before: list[str], given_up: set[tuple[str, str]], up: set[str]
) -> None:
    path, view = (*before, "me"), a_view(*sorted(up))
    parcel = a_parcel("s", "t", "u", path=path, given_up=tuple(sorted(given_up)))
    route = routed(parcel, view)
    crossed = {onward for here, onward in pairwise(path) if here == "me"}
    for hop in route.hops:
        assert hop.neighbour in up
        assert hop.neighbour not in crossed
        assert ("me", hop.neighbour) not in given_up
    served = [d.broker for hop in route.hops for d in hop.destinations]
    assert sorted(served + stranded(route)) == ["s", "t", "u"]
