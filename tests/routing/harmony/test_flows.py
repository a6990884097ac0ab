"""By which paths messages go, when these change, and when they do not."""

from itertools import pairwise
from math import inf

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.builders import a_destination
from support.values import replace
from support.views import a_view

from tidings.core.contract import Destination
from tidings.core.graphs.paths import BrokerPath
from tidings.core.graphs.reliability import disjoint
from tidings.core.links.estimates import LinkEstimate
from tidings.routing.base import View
from tidings.routing.harmony import flow as flow_module
from tidings.routing.harmony import selection as selection_module
from tidings.routing.harmony.flow import Flow, budget
from tidings.routing.harmony.flows import Flows
from tidings.routing.harmony.selection import pair
from tidings.routing.options import HarmonyOptions

OPTIONS = HarmonyOptions()
RECHECK_S = OPTIONS.recheck_s

DIRECT, DETOUR = ("b1", "b2"), ("b1", "b3", "b2")


def triangle(direct_s: float, detour_s: float = 0.020, down: tuple[str, ...] = ()) -> View:
    """Two ways from b1 to b2: a link, and two of half the detour's delay each."""
    ways = [("b1", "b3", detour_s / 2), ("b3", "b2", detour_s / 2)]
    return a_view("b1", ("b1", "b2", direct_s), *ways, down=down)


def change(view: View, into: View) -> View:
    """The same view later."""
    view.links, view.neighbours, view.severed = into.links, into.neighbours, into.severed
    view.version += 1
    return view


def owed(broker: str = "b2", deadline_s: float = inf, availability: float = 0.0) -> Destination:
    return replace(a_destination(broker, (deadline_s, 1)), availability=availability)


def best_path(**options: float) -> Flows:
    return Flows(replace(OPTIONS, **options), qos=False, multipath=False)


def qos_path(**options: float) -> Flows:
    return Flows(replace(OPTIONS, **options), qos=True, multipath=False)


def multipath(**options: float) -> Flows:
    return Flows(replace(OPTIONS, **options), qos=True, multipath=True)


# ---- budgets


@settings(max_examples=100)
@given(st.lists(st.floats(0.001, 0.1), min_size=1, max_size=5), st.floats(1.0, 5.0))
def test_the_budgets_of_a_path_sum_to_the_margin_in_equal_shares(
    delays_s: list[float], times: float
) -> None:
    """b_i = (D - d)/k."""
    path = tuple(f"b{n}" for n in range(len(delays_s) + 1))
    links = [(a, b, s) for (a, b), s in zip(pairwise(path), delays_s, strict=True)]
    total_s = sum(delays_s)
    deadline_s = times * total_s + 1e-6
    target = owed(path[-1], deadline_s)
    [given] = qos_path().get(target, a_view("b0", *links), 0.0).budgets
    assert given.destination == path[-1]
    assert given.expected_s == pytest.approx(delays_s)
    assert len(delays_s) * given.share_s == pytest.approx(deadline_s - total_s)


def test_there_is_no_budget_without_a_deadline_or_without_a_margin() -> None:
    assert qos_path().get(owed(), triangle(0.010), 0.0).budgets == ()
    assert qos_path().get(owed(deadline_s=0.005), triangle(0.010), 0.0).budgets == ()
    assert best_path().get(owed(deadline_s=0.050), triangle(0.010), 0.0).budgets == ()


def test_a_margin_is_never_less_than_none() -> None:
    given = budget({"b1": {"b2": 0.1}}, ("b1", "b2"), 0.05)
    assert (given.share_s, given.expected_s) == (0.0, (0.1,))


def test_the_margin_is_divided_anew_at_each_recheck() -> None:
    flows, view, target = qos_path(), triangle(0.050, 0.020), owed(deadline_s=0.040)
    assert [b.share_s for b in flows.get(target, view, 0.0).budgets] == pytest.approx([0.010])
    change(view, triangle(0.050, 0.030))
    flow = flows.get(target, view, 1.0)
    assert [b.share_s for b in flow.budgets] == pytest.approx([0.010])
    flow = flows.get(target, view, RECHECK_S)
    assert [b.share_s for b in flow.budgets] == pytest.approx([0.005])
    assert flow.budgets[0].expected_s == pytest.approx((0.015, 0.015))


def test_each_of_several_paths_has_its_own_budget() -> None:
    flow = multipath().get(owed(deadline_s=0.050), triangle(0.010), 0.0)
    assert flow.paths == (DIRECT, DETOUR)
    assert [b.share_s for b in flow.budgets] == pytest.approx([0.040, 0.015])


# ---- rechecks


def path_of(flow: Flow) -> BrokerPath:
    [path] = flow.paths
    return path


@pytest.mark.parametrize(("detour_s", "taken"), [(0.0161, DIRECT), (0.0159, DETOUR)])
def test_at_a_recheck_a_path_is_left_only_for_one_that_is_better_by_a_fifth(
    detour_s: float, taken: BrokerPath
) -> None:
    flows, view = best_path(), triangle(0.020, 0.030)
    assert path_of(flows.get(owed(), view, 0.0)) == DIRECT
    change(view, triangle(0.020, detour_s))
    assert path_of(flows.get(owed(), view, RECHECK_S - 0.001)) == DIRECT  # not yet looked for
    assert path_of(flows.get(owed(), view, RECHECK_S)) == taken
    assert path_of(flows.get(owed(), view, 2 * RECHECK_S)) == taken


def test_how_much_better_and_how_often_can_be_set() -> None:
    flows, view = best_path(improvement=0.0, recheck_s=1.0), triangle(0.020, 0.030)
    flows.get(owed(), view, 0.0)
    change(view, triangle(0.020, 0.0199))
    assert path_of(flows.get(owed(), view, 0.9)) == DIRECT
    assert path_of(flows.get(owed(), view, 1.0)) == DETOUR


@pytest.mark.parametrize("deadline_s", [inf, 0.1])
@pytest.mark.parametrize("step_s", [1.0, RECHECK_S, 7.3])
def test_paths_do_not_flap_on_a_link_that_goes_up_and_down(
    deadline_s: float, step_s: float
) -> None:
    """10 ms and 11.5 ms in turn, beside a way of 10.5 ms: it is hardly worth a change, and never
    worth two."""
    for flows in (best_path(), qos_path(), multipath()):
        view, chosen = triangle(0.0115, 0.0105), []
        for turn in range(200):
            change(view, triangle((0.0115, 0.010)[turn % 2], 0.0105))
            chosen.append(flows.get(owed(deadline_s=deadline_s), view, turn * step_s).paths)
        assert sum(a != b for a, b in pairwise(chosen)) <= 1


def test_without_the_threshold_the_same_link_makes_paths_flap() -> None:
    flows, view, chosen = best_path(improvement=0.0), triangle(0.0115, 0.0105), []
    for turn in range(20):
        change(view, triangle((0.0115, 0.010)[turn % 2], 0.0105))
        chosen.append(flows.get(owed(), view, turn * RECHECK_S).paths)
    assert sum(a != b for a, b in pairwise(chosen)) > 15


delay = st.integers(1, 100).map(lambda n: n / 1024)  # sums are exact


@settings(max_examples=60)
@given(st.lists(st.tuples(delay, delay), min_size=1, max_size=30))
def test_best_path_follows_the_rule_whatever_the_delays_do(
    delays_s: list[tuple[float, float]],
) -> None:
    """The rule in other words, on two ways: at each recheck, change if a fifth is gained."""
    flows, view, used = best_path(), triangle(*delays_s[0]), ""
    for turn, (direct_s, detour_s) in enumerate(delays_s):
        now_s = {"direct": direct_s, "detour": detour_s}
        other = {"direct": "detour", "detour": "direct"}
        if not used:
            used = min(now_s, key=lambda way: now_s[way])
        elif now_s[other[used]] <= 0.8 * now_s[used]:
            used = other[used]
        change(view, triangle(direct_s, detour_s))
        expected = DIRECT if used == "direct" else DETOUR
        assert path_of(flows.get(owed(), view, turn * RECHECK_S)) == expected


# ---- at once


@pytest.mark.parametrize("make", [best_path, qos_path])
def test_a_path_with_a_dead_link_is_left_at_once(make: type[Flows]) -> None:
    flows, view = make(), triangle(0.010, 0.5)
    assert path_of(flows.get(owed(), view, 0.0)) == DIRECT
    change(view, triangle(0.010, 0.5, down=("b2",)))
    assert path_of(flows.get(owed(), view, 0.1)) == DETOUR


def test_a_dead_link_far_away_is_left_as_soon_as_it_is_known() -> None:
    flows, view = best_path(), triangle(0.5, 0.010)
    assert path_of(flows.get(owed(), view, 0.0)) == DETOUR
    links = a_view("b1", ("b1", "b2", 0.5), ("b1", "b3", 0.005))
    change(view, links)
    assert path_of(flows.get(owed(), view, 0.1)) == DIRECT


def test_one_of_several_paths_that_dies_is_replaced_at_once() -> None:
    ways = [("b1", "b2", 0.01), ("b1", "b3", 0.01), ("b3", "b2", 0.01)]
    third = [("b1", "b4", 0.03), ("b4", "b2", 0.03)]
    flows, view = multipath(), a_view("b1", *ways, *third)
    assert flows.get(owed(), view, 0.0).paths == (DIRECT, DETOUR)
    change(view, a_view("b1", *ways, *third, down=("b3",)))
    assert flows.get(owed(), view, 0.1).paths == (DIRECT, ("b1", "b4", "b2"))


def test_an_exceeded_budget_is_left_at_once_for_whatever_is_better() -> None:
    """The margin is 10 ms, and the detour gains 2 % only."""
    flows, view, target = qos_path(), triangle(0.020, 0.0299), owed(deadline_s=0.030)
    assert path_of(flows.get(target, view, 0.0)) == DIRECT
    change(view, triangle(0.0295, 0.0299))
    assert path_of(flows.get(target, view, 0.1)) == DIRECT  # within what it may take
    change(view, triangle(0.0305, 0.0299))
    assert path_of(flows.get(target, view, 0.2)) == DETOUR


def test_without_a_deadline_nothing_is_exceeded_and_the_recheck_is_waited_for() -> None:
    for flows, target in ((qos_path(), owed()), (best_path(), owed(deadline_s=0.030))):
        view = triangle(0.020, 0.0299)
        flows.get(target, view, 0.0)
        change(view, triangle(0.5, 0.0299))
        assert path_of(flows.get(target, view, 0.1)) == DIRECT
        assert path_of(flows.get(target, view, RECHECK_S)) == DETOUR


def test_one_link_over_its_share_is_enough_even_if_the_path_still_meets_the_deadline() -> None:
    """D = 40 ms over two links of 10 ms: each may take 20 ms. At 25 ms the whole path takes 35."""
    flows, target = qos_path(), owed(deadline_s=0.040)
    links = (("b1", "b3", 0.010), ("b3", "b2", 0.010), ("b1", "b2", 0.034))
    view = a_view("b1", *links)
    assert path_of(flows.get(target, view, 0.0)) == DETOUR
    change(view, a_view("b1", links[0], ("b3", "b2", 0.025), links[2]))
    assert path_of(flows.get(target, view, 0.1)) == DIRECT


def test_a_path_that_was_late_is_left_at_once_when_another_meets_the_deadline() -> None:
    flows, view, target = qos_path(), triangle(0.040, 0.050), owed(deadline_s=0.035)
    assert path_of(flows.get(target, view, 0.0)) == DIRECT
    change(view, triangle(0.040, 0.034))  # 15 % better
    assert path_of(flows.get(target, view, 0.1)) == DETOUR


def test_the_same_view_is_not_looked_at_twice_before_the_recheck() -> None:
    flows, view = best_path(), triangle(0.010)
    flow = flows.get(owed(), view, 0.0)
    view.links = {}  # without another version
    assert flows.get(owed(), view, RECHECK_S - 0.1) is flow
    assert flow.paths == (DIRECT,)


# ---- trouble


def test_an_impossible_deadline_is_told_once_and_messages_go_by_the_best_path() -> None:
    for flows in (qos_path(), multipath()):
        view, target = triangle(0.010), owed(deadline_s=0.001)
        flow = flows.get(target, view, 0.0)
        assert flow.paths[0] == DIRECT
        warning = flow.take_warning()
        assert "b2" in warning
        assert "1 ms" in warning
        assert "10.0 ms" in warning
        assert flow.take_warning() == ""
        for turn in range(1, 4):
            change(view, triangle(0.010 + 0.001 * turn))
            assert flows.get(target, view, turn * RECHECK_S).take_warning() == ""


def test_trouble_that_ended_and_comes_back_is_told_again() -> None:
    flows, view, target = qos_path(), triangle(0.040, 0.050), owed(deadline_s=0.035)
    assert flows.get(target, view, 0.0).take_warning() != ""
    change(view, triangle(0.010, 0.050))
    flow = flows.get(target, view, RECHECK_S)
    assert flow.take_warning() == ""
    assert [b.share_s for b in flow.budgets] == pytest.approx([0.025])
    change(view, triangle(0.080, 0.090))
    assert "deadline" in flows.get(target, view, 2 * RECHECK_S).take_warning()


def test_a_destination_without_a_path_is_told_once() -> None:
    for flows in (best_path(), qos_path(), multipath()):
        view, target = triangle(0.010), owed("b9", deadline_s=0.1, availability=0.9)
        flow = flows.get(target, view, 0.0)
        assert (flow.paths, flow.budgets) == ((), ())
        assert "b9" in flow.take_warning()
        for turn in range(1, 4):
            change(view, triangle(0.010))
            assert flows.get(target, view, turn * RECHECK_S).take_warning() == ""
        change(view, a_view("b1", ("b1", "b9", 0.01)))
        assert flows.get(target, view, 4 * RECHECK_S).paths == (("b1", "b9"),)


def test_no_path_leads_from_this_broker_to_itself() -> None:
    for flows in (best_path(), qos_path(), multipath()):
        assert flows.get(owed("b1", deadline_s=0.1), triangle(0.010), 0.0).paths == ()


def with_availability(view: View, ratio: float) -> View:
    view.links = {
        a: {b: replace(e, availability=ratio) for b, e in near.items()}
        for a, near in view.links.items()
    }
    return view


def test_as_many_paths_are_used_as_the_asked_availability_needs() -> None:
    view = with_availability(triangle(0.010), 0.9)
    view.links = {"b1": dict(view.links["b1"]), **{a: view.links[a] for a in ("b2", "b3")}}
    view.links["b1"]["b2"] = LinkEstimate(0.010, availability=0.9)
    one = multipath(failures="equal").get(owed(availability=0.98), view, 0.0)
    two = multipath(failures="equal").get(owed(availability=0.999), view, 0.0)
    assert (one.paths, two.paths) == ((DIRECT,), (DIRECT, DETOUR))
    assert one.take_warning() == two.take_warning() == ""


def test_a_level_that_cannot_be_reached_is_told_once_and_the_best_is_done() -> None:
    flows, view = multipath(failures="equal"), triangle(0.010)
    flow = flows.get(owed(availability=0.999999), view, 0.0)
    assert flow.paths == (DIRECT, DETOUR)
    warning = flow.take_warning()
    assert "0.999999" in warning
    assert "b2" in warning
    change(view, triangle(0.011))
    assert flows.get(owed(availability=0.999999), view, RECHECK_S).take_warning() == ""


@pytest.mark.parametrize("failures", ["equal", "measured"])
@pytest.mark.parametrize("level", [0.0, 0.5, 1.0, 7.0, -1.0, float("nan")])
def test_whatever_availability_is_asked_for_messages_leave(level: float, failures: str) -> None:
    for ratio in (0.0, 0.5, 1.0):
        flows = multipath(failures=failures)
        view = with_availability(triangle(0.010), ratio)
        assert flows.get(owed(availability=level), view, 0.0).paths[0] == DIRECT


def test_a_link_of_whose_availability_nothing_is_known_survives() -> None:
    """b1 has reported its links; of those of b3 nothing was heard."""
    view = triangle(0.010)
    view.links = {"b1": view.links["b1"]}
    flow = multipath().get(owed(availability=0.9999), view, 0.0)
    assert flow.paths == (DIRECT,)


def test_flows_are_told_apart_by_deadline_and_level_only_where_these_matter() -> None:
    view = triangle(0.010)
    for flows, kinds in ((best_path(), 1), (qos_path(), 2), (multipath(), 4)):
        found = {
            id(flows.get(owed(deadline_s=d, availability=level), view, 0.0))
            for d in (0.1, 0.2)
            for level in (0.0, 0.9)
        }
        assert len(found) == kinds


def test_there_are_never_more_flows_than_memory_is_meant_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow_module, "MOST_FLOWS", 20)
    flows, view = qos_path(), triangle(0.010)
    for n in range(60):
        kept = flows.get(owed(deadline_s=1.0 + n), view, 0.0)
        assert len(flows._flows) <= 20
        assert len(flows._begun) <= 20
    assert flows.get(owed(deadline_s=60.0), view, 0.0) is kept
    assert flows.get(owed(deadline_s=1.0), view, 0.0).paths == (DIRECT,)  # forgotten, made anew


def test_a_flow_in_use_is_not_forgotten_for_those_that_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow_module, "MOST_FLOWS", 20)
    flows, view = qos_path(), triangle(0.010)
    steady = flows.get(owed(deadline_s=0.5), view, 0.0)
    for n in range(100):
        flows.get(owed(deadline_s=1.0 + n), view, 0.0)
        assert flows.get(owed(deadline_s=0.5), view, 0.0) is steady


# ---- a deadline of its own for every message


@pytest.mark.parametrize("make", [qos_path, multipath])
@pytest.mark.parametrize("low_s", [0.010, 0.007])
def test_paths_do_not_flap_where_every_message_has_a_deadline_of_its_own(
    make: type[Flows], low_s: float
) -> None:
    """The link that goes up and down, every second: at most one change per recheck is worth it."""
    flows, view, chosen = make(), triangle(0.0115, 0.0105), []
    for turn in range(200):
        change(view, triangle((0.0115, low_s)[turn % 2], 0.0105))
        chosen.append(flows.get(owed(deadline_s=0.1 + turn / 1e4), view, float(turn)).paths)
    allowed = 1 if low_s == 0.010 else 200 / RECHECK_S
    assert sum(a != b for a, b in pairwise(chosen)) <= allowed


def test_a_better_path_is_found_at_the_next_recheck_whatever_the_deadlines() -> None:
    flows, view = qos_path(), triangle(0.020, 0.030)
    assert path_of(flows.get(owed(deadline_s=0.1), view, 0.0)) == DIRECT
    change(view, triangle(0.020, 0.010))
    assert path_of(flows.get(owed(deadline_s=0.2), view, 1.0)) == DIRECT
    assert path_of(flows.get(owed(deadline_s=0.3), view, RECHECK_S)) == DETOUR
    assert path_of(flows.get(owed(deadline_s=0.4), view, RECHECK_S + 1)) == DETOUR


def test_a_new_flow_begins_with_paths_of_its_own_where_those_in_use_do_not_serve_it() -> None:
    flows, view = qos_path(), triangle(0.020, 0.030)
    flows.get(owed(deadline_s=0.1), view, 0.0)
    change(view, triangle(0.020, 0.018))
    assert path_of(flows.get(owed(deadline_s=0.2), view, 1.0)) == DIRECT  # it is 10 % better only
    assert path_of(flows.get(owed(deadline_s=0.019), view, 1.0)) == DETOUR
    change(view, triangle(0.020, 0.018, down=("b3",)))
    assert path_of(flows.get(owed(deadline_s=0.3), view, 2.0)) == DIRECT


def test_a_budget_that_an_earlier_message_gave_counts_for_the_next() -> None:
    """The link may take 20 ms. At 25 ms the whole path takes 35, and would still do."""
    links = (("b1", "b3", 0.010), ("b3", "b2", 0.010), ("b1", "b2", 0.034))
    flows, view = qos_path(), a_view("b1", *links)
    assert path_of(flows.get(owed(deadline_s=0.040), view, 0.0)) == DETOUR
    change(view, a_view("b1", links[0], ("b3", "b2", 0.025), links[2]))
    assert path_of(flows.get(owed(deadline_s=0.041), view, 0.1)) == DIRECT


def test_each_deadline_has_as_many_paths_as_meet_it_and_keeps_to_them() -> None:
    """Of three ways one takes 60 ms: with 30 ms there is no second, with 80 ms there is."""
    flows, view, seen = multipath(), triangle(0.010, 0.060), dict[int, set[object]]()
    for turn in range(40):
        change(view, triangle(0.010 + turn % 2 / 1000, 0.060))
        deadline_s = (0.030, 0.080)[turn // 2 % 2] + turn / 1e6
        flow = flows.get(owed(deadline_s=deadline_s), view, float(turn))
        seen.setdefault(turn // 2 % 2, set()).add(flow.paths)
        assert len(flow.budgets) == len(flow.paths)
    assert seen == {0: {(DIRECT,)}, 1: {(DIRECT, DETOUR)}}


def test_paths_are_sought_once_for_all_the_deadlines_that_the_same_ones_meet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sought = []

    def counted(*arguments: object) -> tuple[BrokerPath, ...]:
        sought.append(arguments)
        return pair(*arguments)

    monkeypatch.setattr(selection_module, "pair", counted)
    flows, view = multipath(), triangle(0.010, 0.060)
    for turn in range(100):
        flows.get(owed(deadline_s=0.005 + turn / 1000), view, 0.0)
    assert len(sought) == 2  # only the first meets it; both do, or none does


def test_deadlines_that_nobody_can_meet_are_not_told_one_by_one() -> None:
    flows, view = qos_path(), triangle(0.010)
    warnings = [
        flows.get(owed(deadline_s=0.005 - n / 1e6), view, 0.0).take_warning() for n in range(50)
    ]
    assert [bool(words) for words in warnings] == [True] + 49 * [False]
    assert "7 ms" in flows.get(owed(deadline_s=0.007), view, 0.0).take_warning()  # this is worse


# ---- several deadlines at one destination


def owed_to_two(first_s: float, second_s: float) -> Destination:
    return a_destination("b2", (first_s, 1), (second_s, 1))


@pytest.mark.parametrize("make", [qos_path, multipath])
def test_a_deadline_that_nobody_can_meet_is_no_harm_to_others(make: type[Flows]) -> None:
    for target in (owed(deadline_s=0.050), owed_to_two(0.001, 0.050)):
        flows, view = make(), triangle(0.040, 0.048)
        shares_s = [b.share_s for b in flows.get(target, view, 0.0).budgets]
        assert shares_s == pytest.approx([0.010, 0.001][: len(shares_s)])
        assert shares_s
        change(view, triangle(0.055, 0.048))
        for now in (1.0, 31.0, 61.0):
            flow = flows.get(target, view, now)
            assert flow.paths == (DETOUR,)
            assert len(flow.budgets) == 1


def test_the_deadline_that_cannot_be_met_is_told_and_only_that() -> None:
    flows, view = qos_path(), triangle(0.040, 0.048)
    flow = flows.get(owed_to_two(0.001, 0.050), view, 0.0)
    warning = flow.take_warning()
    assert "No path to b2 meets its tightest deadline" in warning
    assert "40.0 ms, and 1 ms are allowed" in warning
    change(view, triangle(0.090, 0.080))
    assert (
        "and 1 to 50 ms are allowed"
        in flows.get(owed_to_two(0.001, 0.050), view, 1.0).take_warning()
    )
    change(view, triangle(0.040, 0.048))
    assert flows.get(owed_to_two(0.001, 0.050), view, 2.0).take_warning() == ""


def test_the_tightest_deadline_is_served_as_soon_as_a_path_meets_it() -> None:
    flows, view, target = qos_path(), triangle(0.040, 0.048), owed_to_two(0.035, 0.050)
    assert flows.get(target, view, 0.0).deadline_s == 0.050
    change(view, triangle(0.040, 0.034))
    flow = flows.get(target, view, 1.0)
    assert (path_of(flow), flow.deadline_s) == (DETOUR, 0.035)
    change(view, triangle(0.040, 0.038))
    flow = flows.get(target, view, 2.0)
    assert (path_of(flow), flow.deadline_s) == (DETOUR, 0.050)


def test_while_a_tighter_deadline_cannot_be_met_margins_stay_until_the_recheck() -> None:
    """Or a link that grows slowly would never exceed its budget."""
    flows, view, target = qos_path(), triangle(0.040, 0.060), owed_to_two(0.001, 0.050)
    given_out = flows.get(target, view, 0.0).budgets
    change(view, triangle(0.045, 0.060))
    assert flows.get(target, view, 1.0).budgets == given_out
    assert flows.get(target, view, RECHECK_S).budgets != given_out


def test_an_impossible_deadline_does_not_hide_a_level_that_is_not_reached() -> None:
    target = replace(owed_to_two(0.001, 0.050), availability=0.999999)
    warning = multipath(failures="equal").get(target, triangle(0.010), 0.0).take_warning()
    assert "1 ms are allowed" in warning
    assert "0.999999" in warning


# ---- whole histories

ENDS = [(f"b{a}", f"b{b}") for a in range(1, 5) for b in range(a + 1, 5)]


@settings(max_examples=60)
@given(st.data())
def test_through_any_history_the_paths_in_use_exist_and_meet_the_deadline_if_they_can(
    data: st.DataObject,
) -> None:
    """Links come, go and change; at each message the flow is looked at by networkx. Being late is
    no budget's business: a flow may stay late until a path is found, which happens at once."""
    flows, view, target = multipath(), View("b1"), owed(deadline_s=0.5)
    for turn in range(8):
        up = data.draw(st.lists(st.sampled_from(ENDS), unique=True))
        links = [(a, b, data.draw(st.integers(1, 30)) / 64) for a, b in up]
        change(view, a_view("b1", *links))
        graph = nx.Graph()
        graph.add_nodes_from(["b1", "b2"])
        graph.add_weighted_edges_from(links)
        flow = flows.get(target, view, turn * data.draw(st.sampled_from([0.1, RECHECK_S])))
        everything = [tuple(path) for path in nx.all_simple_paths(graph, "b1", "b2")]
        takes_s = {path: nx.path_weight(graph, path, "weight") for path in everything}
        assert set(flow.paths) <= set(everything)
        assert bool(flow.paths) == bool(everything)
        if any(delay_s <= 0.5 for delay_s in takes_s.values()):
            assert min(takes_s[path] for path in flow.paths) <= 0.5
        if flow.budgets:
            assert len(flow.budgets) == len(flow.paths)
        if len(flow.paths) == 2 and not disjoint(*flow.paths):
            assert turn > 0 or not _disjoint_in_time(takes_s)


def _disjoint_in_time(takes_s: dict[BrokerPath, float]) -> bool:
    good = [path for path, delay_s in takes_s.items() if delay_s <= 0.5]
    return any(disjoint(a, b) for a in good for b in good if a != b)


def test_paths_are_left_for_more_available_ones_at_the_next_check() -> None:
    """Three ways of two links each; what the second lost, the third has gained."""

    def ways(second: float, third: float) -> View:
        links = [(a, b, 0.01) for middle in "acd" for a, b in (("b1", middle), (middle, "b2"))]
        view, works = a_view("b1", *links), {"a": 0.9, "c": second, "d": third}
        view.links = {
            a: {b: replace(e, availability=works.get(a, works.get(b))) for b, e in near.items()}
            for a, near in view.links.items()
        }
        return view

    flows, view = multipath(), ways(0.99, 0.5)
    wanted = owed(availability=0.98)
    assert {path[1] for path in flows.get(wanted, view, 0.0).paths} == {"a", "c"}
    change(view, ways(0.5, 0.99))
    flow = flows.get(wanted, view, RECHECK_S)
    assert {path[1] for path in flow.paths} == {"a", "d"}
    assert flow.take_warning() == ""


def three_ways(direct_s: float, x_s: float, y_s: float) -> View:
    ways = [(a, b, s / 2) for m, s in (("x", x_s), ("y", y_s)) for a, b in (("b1", m), (m, "b2"))]
    return a_view("b1", ("b1", "b2", direct_s), *ways)


def test_a_late_second_path_is_left_for_one_that_meets_the_deadline() -> None:
    """All are late at first. Then the second is by 2 ms, and the third not, by 1 ms."""
    flows, view = multipath(failures="equal"), three_ways(0.060, 0.061, 0.062)
    target = owed(deadline_s=0.050)
    assert flows.get(target, view, 0.0).paths == (DIRECT, ("b1", "x", "b2"))
    change(view, three_ways(0.010, 0.052, 0.049))
    flow = flows.get(target, view, 1.0)
    assert flow.paths == (DIRECT, ("b1", "y", "b2"))
    assert len(flow.budgets) == 2


def test_paths_that_miss_the_level_are_left_for_any_that_reach_it() -> None:
    """Also if they are more available by less than a thousandth."""

    def ways(x: float, y: float) -> View:
        view = three_ways(0.010, 0.020, 0.040)
        works = {"x": x, "y": y}
        view.links = {
            a: {
                b: replace(e, availability=works.get(a, works.get(b, 0.98)))
                for b, e in near.items()
            }
            for a, near in view.links.items()
        }
        return view

    flows, view, target = multipath(), ways(1.0, 0.98), owed(availability=0.9995)
    assert flows.get(target, view, 0.0).paths == (DIRECT, ("b1", "x", "b2"))
    change(view, ways(0.99, 1.0))  # 0.9994, and 1
    flow = flows.get(target, view, RECHECK_S)
    assert flow.paths == (DIRECT, ("b1", "y", "b2"))
    assert flow.take_warning() == ""


CONTRACTS = [((0.5,), 0.0), ((0.5,), 0.9), ((0.25,), 0.9999), ((0.1, 0.5), 0.0)]
CONTRACTS += [((0.25, 0.5, inf), 0.0), ((inf,), 0.0)]  # deadlines, level


class AnyHistory(RuleBasedStateMachine):
    """Links come, go and change, time passes, and messages of several contracts leave. Whatever
    has happened: the tightest deadline that some path meets is met by all paths in use."""

    def __init__(self) -> None:
        super().__init__()
        self.flows = {False: qos_path(), True: multipath()}
        self.view, self.now = View("b1"), 0.0
        self.links_s: dict[tuple[str, str], float] = dict.fromkeys(ENDS, 0.125)
        self._tell()

    def _tell(self) -> None:
        links = [(*ends, delay_s) for ends, delay_s in sorted(self.links_s.items())]
        change(self.view, a_view("b1", *links))
        graph = nx.Graph()
        graph.add_nodes_from(["b1", "b2"])
        graph.add_weighted_edges_from(links)
        paths = [tuple(path) for path in nx.all_simple_paths(graph, "b1", "b2")]
        self.takes_s = {path: nx.path_weight(graph, path, "weight") for path in paths}

    @rule(ends=st.sampled_from(ENDS), delay=st.integers(1, 40))
    def a_link_changes_or_comes(self, ends: tuple[str, str], delay: int) -> None:
        self.links_s[ends] = delay / 64
        self._tell()

    @rule(delays=st.lists(st.sampled_from([30, 31, 34]), min_size=3, max_size=3))
    def all_ways_take_about_as_long_as_is_allowed(self, delays: list[int]) -> None:
        self.links_s = {("b1", "b2"): delays[0] / 64}
        for middle, delay in zip(("b3", "b4"), delays[1:], strict=True):
            self.links_s["b1", middle] = self.links_s["b2", middle] = delay / 128
        self._tell()

    @precondition(lambda self: self.links_s)
    @rule(data=st.data())
    def a_link_goes(self, data: st.DataObject) -> None:
        del self.links_s[data.draw(st.sampled_from(sorted(self.links_s)))]
        self._tell()

    @rule(seconds=st.sampled_from([0.1, 5.0, RECHECK_S]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(contracts=st.permutations(CONTRACTS))
    def messages_leave(self, contracts: list[tuple[tuple[float, ...], float]]) -> None:
        for deadlines_s, level in contracts:
            self._send(False, deadlines_s, level)
            self._send(True, deadlines_s, level)

    def _send(self, several: bool, deadlines_s: tuple[float, ...], level: float) -> None:
        target = a_destination("b2", *[(deadline_s, 1) for deadline_s in deadlines_s])
        target = replace(target, availability=level)
        flow = self.flows[several].get(target, self.view, self.now)
        best_s = min(self.takes_s.values(), default=inf)
        assert set(flow.paths) <= set(self.takes_s)
        assert bool(flow.paths) == bool(self.takes_s)
        served_s = next((s for s in deadlines_s if best_s <= s), None)
        if flow.paths and served_s is not None:
            assert max(self.takes_s[path] for path in flow.paths) <= served_s
            assert len(flow.budgets) == (len(flow.paths) if served_s < inf else 0)
        else:
            assert flow.budgets == ()

    @invariant()
    def flows_look_for_better_paths_at_a_steady_pace(self) -> None:
        for flows in self.flows.values():
            for flow in flows._flows.young.values():
                assert flow.check_at <= self.now + RECHECK_S


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
