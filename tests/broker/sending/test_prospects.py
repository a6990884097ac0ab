"""What lies beyond a link follows the path that a parcel's strategy takes."""

from math import sqrt

import pytest
from support.builders import a_parcel, pinned
from support.values import replace

from tidings.broker.sending.prospects import LinkProspects
from tidings.broker.strategies import Strategies
from tidings.core.links.estimates import LinkEstimate
from tidings.core.links.outlook import Outlook
from tidings.core.parcel import Parcel
from tidings.routing.base import View

Links = dict[tuple[str, str], LinkEstimate]

# From b1, b4 is nearest by way of b2 and b3, and has the fewest links by way of b5.
LINKS: Links = {
    ("b1", "b2"): LinkEstimate(0.01, 1.0, 1e-6, 3e-7),
    ("b2", "b3"): LinkEstimate(0.02, 1.0, 2e-6, 4e-7),
    ("b3", "b4"): LinkEstimate(0.03, 1.0, 3e-6, 0.0),
    ("b1", "b5"): LinkEstimate(0.50, 1.0, 5e-6, 1e-7),
    ("b5", "b4"): LinkEstimate(0.50, 1.0, 5e-6, 1e-7),
}


def seen_by_b1(links: Links) -> View:
    view = View("b1")
    see(view, links)
    return view


def see(view: View, links: Links) -> None:
    graph: dict[str, dict[str, LinkEstimate]] = {}
    for (a, b), estimate in links.items():
        graph.setdefault(a, {})[b] = estimate
        graph.setdefault(b, {})[a] = estimate
    view.links, view.neighbours = graph, tuple(sorted(graph["b1"]))
    view.version += 1


def beyond(neighbour: str, view: View) -> LinkProspects:
    return LinkProspects(neighbour, view, Strategies(pinned(), None))


def by(strategy: str) -> Parcel:
    plain = a_parcel("b4")
    return Parcel(
        plain.message, 0.0, plain.expires_at, plain.destinations, plain.path, strategy, 100
    )


def assert_alike(found: Outlook | None, expected: Outlook) -> None:
    assert found is not None
    assert found.brokers == expected.brokers
    assert found.delay_s == pytest.approx(expected.delay_s)
    assert found.s_per_byte == pytest.approx(expected.s_per_byte)
    assert found.variance == pytest.approx(expected.variance)


def test_means_and_variances_of_the_trees_path_add_up() -> None:
    found = beyond("b2", seen_by_b1(LINKS)).outlook(by("d-tree"), "b4")
    assert_alike(found, Outlook(3, 0.06, 6e-6, 3e-7**2 + 4e-7**2))
    assert found is not None
    assert found.spread_s(1_000) == pytest.approx(1_000 * sqrt(25e-14))


def test_each_strategy_has_its_own_path() -> None:
    view = seen_by_b1(LINKS)
    assert_alike(beyond("b5", view).outlook(by("r-tree"), "b4"), Outlook(2, 1.0, 1e-5, 2e-14))


def test_a_parcel_that_leaves_another_way_is_expected_to_go_on_by_the_shortest() -> None:
    view = seen_by_b1(LINKS)
    expected = Outlook(2, 1.0, 1e-5, 2e-14)
    assert_alike(beyond("b5", view).outlook(by("d-tree"), "b4"), expected)
    assert_alike(beyond("b5", view).outlook(by("dcrd"), "b4"), expected)
    assert_alike(beyond("b5", view).outlook(by("nobody-knows-it"), "b4"), expected)


def test_a_plan_that_the_parcel_carries_comes_before_what_its_strategy_would_do() -> None:
    view = seen_by_b1(LINKS)
    planned = replace(by("balanced"), path=("b0", "b1"), plan=(("b0", "b1", "b5", "b4"),))
    around = replace(planned, plan=(("b1", "b5", "b4", "b3"), ("b1", "b2", "b3", "b4")))
    assert_alike(beyond("b5", view).outlook(planned, "b4"), Outlook(2, 1.0, 1e-5, 2e-14))
    prospects = beyond("b2", view)
    assert_alike(prospects.outlook(around, "b4"), Outlook(3, 0.06, 6e-6, 25e-14))
    assert_alike(beyond("b5", view).outlook(around, "b3"), Outlook(3, 1.03, 1.3e-5, 2e-14))
    see(view, LINKS | {("b2", "b3"): LinkEstimate(0.04, 1.0, 7e-6, 0.0)})
    assert_alike(prospects.outlook(around, "b4"), Outlook(3, 0.08, 1.1e-5, 9e-14))


@pytest.mark.parametrize("plan", [((),), (("b4",),), (("b5", "b4"),), (("b1", "b5", "b4"),)])
def test_a_plan_that_does_not_lead_over_this_link_says_nothing(
    plan: tuple[tuple[str, ...], ...],
) -> None:
    parcel = replace(by("d-tree"), plan=plan)
    found = beyond("b2", seen_by_b1(LINKS)).outlook(parcel, "b4")
    assert_alike(found, Outlook(3, 0.06, 6e-6, 25e-14))


def test_the_neighbour_itself_is_one_link_away() -> None:
    found = beyond("b2", seen_by_b1(LINKS)).outlook(by("dcrd"), "b2")
    assert_alike(found, Outlook(1, 0.01, 1e-6, 9e-14))


def test_a_change_of_the_view_changes_the_outlook_and_the_version() -> None:
    view = seen_by_b1(LINKS)
    prospects = beyond("b2", view)
    before, version = prospects.outlook(by("d-tree"), "b3"), prospects.version
    see(view, LINKS | {("b2", "b3"): LinkEstimate(0.04, 1.0, 7e-6, 0.0)})
    assert prospects.version != version
    after = prospects.outlook(by("d-tree"), "b3")
    assert_alike(before, Outlook(2, 0.03, 3e-6, 25e-14))
    assert_alike(after, Outlook(2, 0.05, 8e-6, 9e-14))


def test_a_change_of_path_is_followed() -> None:
    view = seen_by_b1(LINKS)
    prospects = beyond("b2", view)
    assert_alike(prospects.outlook(by("d-tree"), "b4"), Outlook(3, 0.06, 6e-6, 25e-14))
    see(view, LINKS | {("b2", "b4"): LinkEstimate(0.001, 1.0, 0.0, 0.0)})
    assert_alike(prospects.outlook(by("d-tree"), "b4"), Outlook(2, 0.011, 1e-6, 9e-14))


def test_nothing_is_known_of_what_is_out_of_reach_or_of_a_link_without_samples() -> None:
    view = seen_by_b1(LINKS)
    assert beyond("b2", view).outlook(by("d-tree"), "b9") is None
    unmeasured = beyond("b7", view)
    assert unmeasured.outlook(by("d-tree"), "b7") is None
    assert unmeasured.s_per_byte == 0.0
    assert beyond("b2", view).s_per_byte == 1e-6
