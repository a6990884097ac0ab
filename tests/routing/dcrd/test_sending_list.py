"""The sending list: the paper's equations against enumeration, chance and brute force.

Three oracles that share nothing with the code: the equations as they are printed, in fractions; all
outcomes of all attempts, each with its probability; and the process itself, simulated.
"""

from fractions import Fraction
from itertools import permutations, product
from math import inf, isclose, isnan, prod, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tidings.routing.dcrd.sending_list import (
    Way,
    attempts,
    exact_way,
    expected,
    in_order,
    paper_way,
)

Exact = tuple[Fraction, Fraction, Fraction]  # a way's s, r and f


# -- the paper's equations, letter by letter --


def equation_1(alpha: Fraction, gamma: Fraction, m: int) -> tuple[Fraction, Fraction]:
    numerator = sum((k * alpha) * gamma * (1 - gamma) ** (k - 1) for k in range(1, m + 1))
    return numerator / (1 - (1 - gamma) ** m), 1 - (1 - gamma) ** m


def equation_3(d: list[Fraction], r: list[Fraction]) -> tuple[Fraction, Fraction]:
    n = len(d)
    numerator = sum(sum(d[: i + 1]) * (r[i] * prod(1 - p for p in r[:i])) for i in range(n))
    return numerator / (1 - prod(1 - p for p in r)), 1 - prod(1 - p for p in r)


def equation_4(d: list[Fraction], r: list[Fraction]) -> Fraction:
    """The last line of the expansion of Eq. 3's numerator."""
    stages = sum(d[i] * prod(1 - p for p in r[:i]) for i in range(len(d)))
    return stages - sum(d) * prod(1 - p for p in r)


# -- all outcomes of all attempts --


def enumerated(ways: list[Exact]) -> tuple[Fraction, Fraction]:
    """Every vector of successes and failures, of which the first success counts."""
    delay, delivered = Fraction(0), Fraction(0)
    for outcome in product((True, False), repeat=len(ways)):
        if any(outcome):
            chance = prod(
                r if good else 1 - r for good, (_, r, _) in zip(outcome, ways, strict=True)
            )
            first = outcome.index(True)
            delay += chance * (sum(f for _, _, f in ways[:first]) + ways[first][0])
            delivered += chance
    return delay / delivered, delivered


def as_fractions(ways: tuple[Way, ...] | list[Way]) -> list[Exact]:
    return [(Fraction(w.delay_s), Fraction(w.ratio), Fraction(w.failure_s)) for w in ways]


def mean_delay_s(order: tuple[Way, ...]) -> float:
    """Eq. 3 with its sums as they stand, in floats: quick enough for every order of six ways."""
    total = waited_s = delivered = 0.0
    still = 1.0
    for way in order:
        total += (waited_s + way.delay_s) * way.ratio * still
        delivered += way.ratio * still
        waited_s += way.failure_s
        still *= 1 - way.ratio
    return total / delivered


# -- the process itself --


def first_success(ways: list[Way], runs: int, seed: int) -> NDArray[np.float64]:
    """How long each run took until its first success; nan where no way succeeded."""
    draws = np.random.default_rng(seed).random((runs, len(ways)))
    took, waited_s = np.full(runs, np.nan), 0.0
    for number, way in enumerate(ways):
        now = np.isnan(took) & (draws[:, number] < way.ratio)
        took[now] = waited_s + way.delay_s
        waited_s += way.failure_s
    return took


def assert_mean(samples: NDArray[np.float64], claimed: float, within: float = 0.01) -> None:
    """The claim lies within four standard errors, and those are small enough to prove something."""
    error = float(samples.std(ddof=1)) / sqrt(len(samples))
    assert 4 * error <= within * claimed
    assert abs(float(samples.mean()) - claimed) <= max(4 * error, 1e-12)


# -- cases --

NAMES = "abcdef"
delays_s = st.floats(0.001, 10.0)
ratios = st.floats(0.01, 1.0) | st.sampled_from((0.0, 1.0))
grid_ratios = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))  # small enough that ties are common
grid_delays_s = st.integers(0, 4).map(float)
tenths = st.integers(1, 10).map(lambda tenth: Fraction(tenth, 10))
milliseconds = st.integers(0, 500).map(lambda delay_ms: Fraction(delay_ms, 1000))


def lists_of(one: st.SearchStrategy[tuple[float, float, float]]) -> st.SearchStrategy[list[Way]]:
    numbers = st.integers(1, 6).flatmap(lambda size: st.lists(one, min_size=size, max_size=size))
    return numbers.map(lambda rows: [Way(NAMES[i], *row) for i, row in enumerate(rows)])


general_ways = lists_of(st.tuples(delays_s, ratios, delays_s | st.just(0.0)))
tied_ways = lists_of(st.tuples(grid_delays_s, grid_ratios, grid_delays_s))
paper_ways = lists_of(st.tuples(delays_s, ratios).map(lambda way: (*way, way[0])))
tied_paper_ways = lists_of(st.tuples(grid_delays_s, grid_ratios).map(lambda way: (*way, way[0])))


# -- Eq. 1 --


@given(milliseconds, tenths, st.integers(1, 6))
def test_equation_1_is_a_timeout_of_one_delay(alpha: Fraction, gamma: Fraction, m: int) -> None:
    delay_s, ratio = attempts(float(alpha), float(gamma), m, timeout_s=float(alpha))
    assert (delay_s, ratio) == pytest.approx(tuple(map(float, equation_1(alpha, gamma, m))))


@given(milliseconds, tenths, st.integers(1, 6), milliseconds)
def test_transmissions_agree_with_all_their_outcomes(
    alpha: Fraction, gamma: Fraction, m: int, timeout: Fraction
) -> None:
    delay_s, ratio = attempts(float(alpha), float(gamma), m, float(timeout))
    told = enumerated([(alpha, gamma, timeout)] * m)
    assert (delay_s, ratio) == pytest.approx(tuple(map(float, told)))


@pytest.mark.parametrize(
    ("ratio", "transmissions", "timeout_s"), [(0.9, 2, 0.03), (0.4, 3, 0.06), (0.1, 5, 0.03)]
)
def test_transmissions_agree_with_chance(
    ratio: float, transmissions: int, timeout_s: float
) -> None:
    runs = 400_000
    needed = np.random.default_rng(7).geometric(ratio, runs)
    done = needed[needed <= transmissions]
    delay_s, delivered = attempts(0.03, ratio, transmissions, timeout_s)
    assert_mean(0.03 + (done - 1) * timeout_s, delay_s)
    assert_mean((needed <= transmissions).astype(float), delivered)


def test_one_transmission_is_the_link_itself() -> None:
    assert attempts(0.03, 0.7, 1, timeout_s=0.06) == (0.03, 0.7)


def test_a_link_that_never_delivers_has_no_delay() -> None:
    assert attempts(0.03, 0.0, 3, timeout_s=0.06) == (inf, 0.0)


def test_a_link_that_always_delivers_is_never_repeated() -> None:
    assert attempts(0.03, 1.0, 3, timeout_s=inf) == (0.03, 1.0)


# -- Eq. 3 and 4 --

possible = st.lists(st.tuples(milliseconds, tenths, milliseconds), min_size=1, max_size=6)
with_dead_ends = st.lists(
    st.tuples(milliseconds, tenths | st.just(Fraction(0)), milliseconds), min_size=1, max_size=6
).filter(lambda ways: any(r for _, r, _ in ways))


def floats(ways: list[Exact]) -> list[Way]:
    return [Way(NAMES[i], *map(float, way)) for i, way in enumerate(ways)]


@settings(deadline=None)
@given(with_dead_ends)
def test_ways_agree_with_all_their_outcomes(ways: list[Exact]) -> None:
    assert expected(floats(ways)) == pytest.approx(tuple(map(float, enumerated(ways))))


@given(possible)
def test_equation_3_is_a_failure_that_costs_as_much_as_success(ways: list[Exact]) -> None:
    d, r = [s for s, _, _ in ways], [r for _, r, _ in ways]
    told = tuple(map(float, equation_3(d, r)))
    assert expected(floats([(s, r, s) for s, r, _ in ways])) == pytest.approx(told)


@given(possible)
def test_equation_4_is_the_numerator_of_equation_3(ways: list[Exact]) -> None:
    d, r = [s for s, _, _ in ways], [r for _, r, _ in ways]
    delay, delivered = equation_3(d, r)
    assert equation_4(d, r) == delay * delivered
    delay_s, ratio = expected(floats([(s, r, s) for s, r, _ in ways]))
    assert delay_s * ratio == pytest.approx(float(equation_4(d, r)))


@pytest.mark.parametrize("seed", range(4))
def test_ways_agree_with_chance(seed: int) -> None:
    draw = np.random.default_rng(seed).uniform
    ways = [Way(name, draw(0.01, 0.2), draw(0.1, 0.8), draw(0.01, 0.2)) for name in NAMES]
    took = first_success(ways, 400_000, seed)
    delay_s, ratio = expected(ways)
    assert_mean(took[~np.isnan(took)], delay_s)
    assert_mean((~np.isnan(took)).astype(float), ratio)


def test_without_a_way_that_can_succeed_nothing_is_expected() -> None:
    assert expected(()) == (inf, 0.0)
    assert expected((Way("a", 0.1, 0.0, 0.1), Way("b", inf, 0.0, inf))) == (inf, 0.0)


def test_behind_a_sure_way_nothing_matters() -> None:
    sure, never, far = Way("a", 0.1, 1.0, inf), Way("b", inf, 0.0, inf), Way("c", inf, 0.5, inf)
    assert expected((sure, never, far)) == expected((sure,)) == (0.1, 1.0)


def test_a_dead_end_costs_its_failure_where_something_follows() -> None:
    dead, sure = Way("a", 0.1, 0.0, 0.25), Way("b", 0.5, 1.0, 0.0)
    assert expected((dead, sure)) == (0.75, 1.0)
    assert expected((sure, dead)) == (0.5, 1.0)


def test_tiny_ratios_keep_their_delay() -> None:
    tiny = [Way("a", 1.0, 1e-200, 1.0), Way("b", 3.0, 1e-200, 1.0)]
    assert expected(tiny) == (pytest.approx(2.5), pytest.approx(2e-200))


two_orders = (general_ways | tied_ways).flatmap(
    lambda ways: st.tuples(st.just(ways), st.permutations(ways))
)


@given(two_orders)
def test_the_delivery_ratio_does_not_depend_on_the_order(orders: tuple[list[Way], ...]) -> None:
    one, other = orders
    assert expected(one)[1] == pytest.approx(expected(other)[1])


# -- Theorem 1 --


def assert_best_of_all_orders(ways: list[Way]) -> None:
    order = in_order(ways)
    assert sorted(order, key=lambda way: way.neighbour) == ways
    if not any(way.ratio for way in ways):
        assert expected(order) == (inf, 0.0)
        return
    best_s = min(map(mean_delay_s, permutations(ways)))
    assert isclose(mean_delay_s(order), best_s, rel_tol=1e-9, abs_tol=1e-12)
    assert isclose(expected(order)[0], best_s, rel_tol=1e-9, abs_tol=1e-12)


@settings(deadline=None, max_examples=250)
@given(paper_ways | tied_paper_ways)
@example([Way("a", 2.0, 1.0, 2.0), Way("b", 1.0, 0.5, 1.0), Way("c", 1.0, 0.0, 1.0)])
@example([Way("a", 2.0, 1.0, 2.0), Way("b", 1.0, 1.0, 1.0), Way("c", 0.25, 0.5, 0.25)])
def test_no_order_of_the_papers_ways_is_better(ways: list[Way]) -> None:
    assert_best_of_all_orders(ways)


@settings(deadline=None, max_examples=250)
@given(general_ways | tied_ways)
@example([Way("a", 1.0, 0.5, 3.0), Way("b", 3.0, 0.5, 1.0), Way("c", 4.0, 1.0, 9.0)])
@example([Way("a", 1.0, 0.0, 0.0), Way("b", 3.0, 0.5, 0.0), Way("c", 2.0, 0.25, 0.0)])
def test_no_order_is_better_whatever_a_failure_costs(ways: list[Way]) -> None:
    assert_best_of_all_orders(ways)


inner = st.tuples(
    st.integers(1, 4).map(float), st.sampled_from((0.25, 0.5, 0.75)), st.integers(1, 4).map(float)
)


@settings(deadline=None, max_examples=60)
@given(st.lists(inner, min_size=2, max_size=4))
def test_every_best_order_is_sorted_by_the_price(rows: list[tuple[float, float, float]]) -> None:
    """Theorem 1's other half, in exact numbers: the price is necessary, not only sufficient."""
    ways = as_fractions([Way("", *row) for row in rows])
    costs = {order: enumerated(list(order))[0] for order in permutations(ways)}
    for order, cost in costs.items():
        prices = [s + f * (1 - r) / r for s, r, f in order]
        assert (cost == min(costs.values())) == (prices == sorted(prices))


@given(paper_ways)
def test_the_papers_order_is_by_delay_over_ratio(ways: list[Way]) -> None:
    able = [way for way in in_order(ways) if way.ratio]
    quotients = [way.delay_s / way.ratio for way in able]
    assert quotients == pytest.approx(sorted(quotients))


def test_equals_are_ordered_by_name_however_they_come() -> None:
    ways = [Way("b", 1.0, 0.5, 1.0), Way("a", 2.0, 1.0, 2.0), Way("c", 1.5, 0.5, 0.5)]
    for order in permutations(ways):
        assert [way.neighbour for way in in_order(order)] == ["a", "b", "c"]


def test_what_cannot_succeed_is_last_even_behind_what_never_ends() -> None:
    ways = [
        Way("a", 0.0, 0.0, 0.0),
        Way("b", inf, 0.0, inf),
        Way("c", 1.0, 1.0, inf),
        Way("d", 9.0, 0.5, 0.0),
        Way("e", inf, 0.5, 0.0),
        Way("f", 1.0, 0.5, inf),
    ]
    for order in permutations(ways):
        assert [way.neighbour for way in in_order(order)] == ["c", "d", "e", "f", "a", "b"]


# -- ways --


@given(milliseconds, tenths, st.integers(1, 4), milliseconds, tenths)
def test_a_paper_way_is_equation_2(
    alpha: Fraction, gamma: Fraction, m: int, onward: Fraction, onward_ratio: Fraction
) -> None:
    link, taken = equation_1(alpha, gamma, m)
    way = paper_way("a", float(alpha), float(gamma), m, float(onward), float(onward_ratio))
    assert way.delay_s == pytest.approx(float(link + onward))
    assert way.ratio == pytest.approx(float(taken * onward_ratio))
    assert way.failure_s == way.delay_s


def all_attempts(
    link_s: float, ratio: float, m: int, timeout_s: float, onward_s: float, onward_ratio: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One neighbour, many times: how long successes took, and how long failures."""
    chance, runs = np.random.default_rng(11), 400_000
    there, back = chance.geometric(ratio, runs), np.empty(0, dtype=np.int64)
    while len(back) < runs:  # a message that was taken always comes back, if it must
        legs = chance.geometric(ratio, runs)
        back = np.concatenate((back, legs[legs <= m]))
    out_s = link_s + (there - 1) * timeout_s + onward_s
    return_s = link_s + (back[:runs] - 1) * timeout_s
    taken, onwards = there <= m, chance.random(runs) < onward_ratio
    failed_s = np.where(taken, out_s + return_s, m * timeout_s)
    return out_s[taken & onwards], failed_s[~(taken & onwards)]


@pytest.mark.parametrize(
    "case",
    [
        (0.03, 0.9, 1, 0.06, 0.05, 0.8),
        (0.03, 0.6, 2, 0.06, 0.05, 0.8),
        (0.02, 0.5, 3, 0.08, 0.1, 0.3),
        (0.02, 1.0, 2, 0.04, 0.1, 0.5),
        (0.02, 0.7, 2, 0.04, 0.0, 1.0),
    ],
)
def test_an_exact_way_agrees_with_chance(
    case: tuple[float, float, int, float, float, float],
) -> None:
    way = exact_way("a", *case)
    succeeded_s, failed_s = all_attempts(*case)
    assert_mean(succeeded_s, way.delay_s)
    assert_mean(failed_s, way.failure_s)
    assert len(succeeded_s) / 400_000 == pytest.approx(way.ratio, abs=4 * 0.5 / sqrt(400_000))


def test_where_failure_is_impossible_it_costs_nothing() -> None:
    assert exact_way("a", 0.03, 1.0, 2, 0.06, 0.05, 1.0) == Way("a", 0.03 + 0.05, 1.0, 0.0)


def test_a_dead_link_costs_all_its_timeouts_whatever_lies_behind_it() -> None:
    for onward in ((0.0, 1.0), (0.05, 0.5), (inf, 0.0)):
        assert exact_way("a", 0.03, 0.0, 2, 0.06, *onward) == Way("a", inf, 0.0, 0.12)


def test_the_papers_order_is_not_the_best_for_what_failures_cost() -> None:
    """A sure link to a doubtful broker, and a doubtful link whose failure shows after a timeout."""
    links = {"a": (0.010, 1.0), "b": (0.100, 0.5)}  # delay and delivery ratio, sent once
    onwards = {"a": (0.100, 0.5), "b": (0.000, 1.0)}
    papers = [paper_way(name, *links[name], 1, *onwards[name]) for name in "ab"]
    exact = {
        name: exact_way(name, *links[name], 1, 2 * links[name][0], *onwards[name]) for name in "ab"
    }
    as_in_paper = [exact[way.neighbour] for way in in_order(papers)]
    assert [way.neighbour for way in as_in_paper] == ["b", "a"]
    assert [way.neighbour for way in in_order(exact.values())] == ["a", "b"]
    assert expected(as_in_paper)[0] == pytest.approx(0.170)
    assert expected(in_order(exact.values()))[0] == pytest.approx(0.440 / 3)


# -- numbers at the edge --

any_delay_s = st.floats(0.0, 1e308) | st.sampled_from((0.0, 5e-324, inf))
any_ratio = st.floats(0.0, 1.0) | st.sampled_from((0.0, 5e-324, 1e-300, 1.0 - 2**-53, 1.0))
edge_ways = lists_of(st.tuples(any_delay_s, any_ratio, any_delay_s))


@given(edge_ways)
def test_nothing_expected_is_ever_not_a_number(ways: list[Way]) -> None:
    for order in (ways, in_order(ways)):
        delay_s, ratio = expected(order)
        assert delay_s >= 0.0
        assert 0.0 <= ratio <= 1.0
        assert (ratio == 0.0) == (not any(way.ratio for way in ways))
    able = [way.ratio > 0.0 for way in in_order(ways)]
    assert able == sorted(able, reverse=True)


@given(any_delay_s, any_ratio, st.integers(1, 5), any_delay_s, any_delay_s, any_ratio)
def test_no_way_is_ever_made_of_what_is_not_a_number(
    link_s: float, ratio: float, m: int, timeout_s: float, onward_s: float, onward_ratio: float
) -> None:
    for way in (
        paper_way("a", link_s, ratio, m, onward_s, onward_ratio),
        exact_way("a", link_s, ratio, m, timeout_s, onward_s, onward_ratio),
    ):
        assert not any(map(isnan, (way.delay_s, way.ratio, way.failure_s)))
        assert 0.0 <= way.ratio <= 1.0
