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

from tidings.routing.dcrd.attempts import (
    Attempt,
    exact_attempt,
    expected,
    in_order,
    over_link,
    paper_attempt,
)

Exact = tuple[Fraction, Fraction, Fraction]  # an attempt's s, r and f


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


def enumerated(attempts: list[Exact]) -> tuple[Fraction, Fraction]:
    """Every vector of successes and failures, of which the first success counts."""
    delay, delivered = Fraction(0), Fraction(0)
    for outcome in product((True, False), repeat=len(attempts)):
        if any(outcome):
            chance = prod(
                r if good else 1 - r for good, (_, r, _) in zip(outcome, attempts, strict=True)
            )
            first = outcome.index(True)
            delay += chance * (sum(f for _, _, f in attempts[:first]) + attempts[first][0])
            delivered += chance
    return delay / delivered, delivered


def as_fractions(attempts: tuple[Attempt, ...] | list[Attempt]) -> list[Exact]:
    return [(Fraction(w.delay_s), Fraction(w.ratio), Fraction(w.failure_s)) for w in attempts]


def mean_delay_s(order: tuple[Attempt, ...]) -> float:
    """Eq. 3 with its sums as they stand, in floats: quick enough for every order of six."""
    total = waited_s = delivered = 0.0
    still = 1.0
    for attempt in order:
        total += (waited_s + attempt.delay_s) * attempt.ratio * still
        delivered += attempt.ratio * still
        waited_s += attempt.failure_s
        still *= 1 - attempt.ratio
    return total / delivered


# -- the process itself --


def first_success(attempts: list[Attempt], runs: int, seed: int) -> NDArray[np.float64]:
    """How long each run took until its first success; nan where no attempt succeeded."""
    draws = np.random.default_rng(seed).random((runs, len(attempts)))
    took, waited_s = np.full(runs, np.nan), 0.0
    for number, attempt in enumerate(attempts):
        now = np.isnan(took) & (draws[:, number] < attempt.ratio)
        took[now] = waited_s + attempt.delay_s
        waited_s += attempt.failure_s
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


def lists_of(
    one: st.SearchStrategy[tuple[float, float, float]],
) -> st.SearchStrategy[list[Attempt]]:
    numbers = st.integers(1, 6).flatmap(lambda size: st.lists(one, min_size=size, max_size=size))
    return numbers.map(lambda rows: [Attempt(NAMES[i], *row) for i, row in enumerate(rows)])


general_attempts = lists_of(st.tuples(delays_s, ratios, delays_s | st.just(0.0)))
tied_attempts = lists_of(st.tuples(grid_delays_s, grid_ratios, grid_delays_s))
paper_attempts = lists_of(st.tuples(delays_s, ratios).map(lambda row: (*row, row[0])))
tied_paper_attempts = lists_of(
    st.tuples(grid_delays_s, grid_ratios).map(lambda row: (*row, row[0]))
)


# -- Eq. 1 --


@given(milliseconds, tenths, st.integers(1, 6))
def test_equation_1_is_a_timeout_of_one_delay(alpha: Fraction, gamma: Fraction, m: int) -> None:
    delay_s, ratio = over_link(float(alpha), float(gamma), m, timeout_s=float(alpha))
    assert (delay_s, ratio) == pytest.approx(tuple(map(float, equation_1(alpha, gamma, m))))


@given(milliseconds, tenths, st.integers(1, 6), milliseconds)
def test_transmissions_agree_with_all_their_outcomes(
    alpha: Fraction, gamma: Fraction, m: int, timeout: Fraction
) -> None:
    delay_s, ratio = over_link(float(alpha), float(gamma), m, float(timeout))
    exact = enumerated([(alpha, gamma, timeout)] * m)
    assert (delay_s, ratio) == pytest.approx(tuple(map(float, exact)))


@pytest.mark.parametrize(
    ("ratio", "transmissions", "timeout_s"), [(0.9, 2, 0.03), (0.4, 3, 0.06), (0.1, 5, 0.03)]
)
def test_transmissions_agree_with_chance(
    ratio: float, transmissions: int, timeout_s: float
) -> None:
    runs = 400_000
    needed = np.random.default_rng(7).geometric(ratio, runs)
    done = needed[needed <= transmissions]
    delay_s, delivered = over_link(0.03, ratio, transmissions, timeout_s)
    assert_mean(0.03 + (done - 1) * timeout_s, delay_s)
    assert_mean((needed <= transmissions).astype(float), delivered)


def test_one_transmission_is_the_link_itself() -> None:
    assert over_link(0.03, 0.7, 1, timeout_s=0.06) == (0.03, 0.7)


def test_a_link_that_never_delivers_has_no_delay() -> None:
    assert over_link(0.03, 0.0, 3, timeout_s=0.06) == (inf, 0.0)


def test_a_link_that_always_delivers_is_never_repeated() -> None:
    assert over_link(0.03, 1.0, 3, timeout_s=inf) == (0.03, 1.0)


# -- Eq. 3 and 4 --

possible = st.lists(st.tuples(milliseconds, tenths, milliseconds), min_size=1, max_size=6)
with_dead_ends = st.lists(
    st.tuples(milliseconds, tenths | st.just(Fraction(0)), milliseconds), min_size=1, max_size=6
).filter(lambda attempts: any(r for _, r, _ in attempts))


def floats(attempts: list[Exact]) -> list[Attempt]:
    return [Attempt(NAMES[i], *map(float, attempt)) for i, attempt in enumerate(attempts)]


@settings(deadline=None)
@given(with_dead_ends)
def test_attempts_agree_with_all_their_outcomes(attempts: list[Exact]) -> None:
    assert expected(floats(attempts)) == pytest.approx(tuple(map(float, enumerated(attempts))))


@given(possible)
def test_equation_3_is_a_failure_that_costs_as_much_as_success(attempts: list[Exact]) -> None:
    d, r = [s for s, _, _ in attempts], [r for _, r, _ in attempts]
    exact = tuple(map(float, equation_3(d, r)))
    assert expected(floats([(s, r, s) for s, r, _ in attempts])) == pytest.approx(exact)


@given(possible)
def test_equation_4_is_the_numerator_of_equation_3(attempts: list[Exact]) -> None:
    d, r = [s for s, _, _ in attempts], [r for _, r, _ in attempts]
    delay, delivered = equation_3(d, r)
    assert equation_4(d, r) == delay * delivered
    delay_s, ratio = expected(floats([(s, r, s) for s, r, _ in attempts]))
    assert delay_s * ratio == pytest.approx(float(equation_4(d, r)))


@pytest.mark.parametrize("seed", range(4))
def test_attempts_agree_with_chance(seed: int) -> None:
    draw = np.random.default_rng(seed).uniform
    attempts = [Attempt(name, draw(0.01, 0.2), draw(0.1, 0.8), draw(0.01, 0.2)) for name in NAMES]
    took = first_success(attempts, 400_000, seed)
    delay_s, ratio = expected(attempts)
    assert_mean(took[~np.isnan(took)], delay_s)
    assert_mean((~np.isnan(took)).astype(float), ratio)


def test_without_an_attempt_that_can_succeed_nothing_is_expected() -> None:
    assert expected(()) == (inf, 0.0)
    assert expected((Attempt("a", 0.1, 0.0, 0.1), Attempt("b", inf, 0.0, inf))) == (inf, 0.0)


def test_after_a_sure_attempt_nothing_matters() -> None:
    sure, never, far = (
        Attempt("a", 0.1, 1.0, inf),
        Attempt("b", inf, 0.0, inf),
        Attempt("c", inf, 0.5, inf),
    )
    assert expected((sure, never, far)) == expected((sure,)) == (0.1, 1.0)


def test_a_dead_end_costs_its_failure_where_something_follows() -> None:
    dead, sure = Attempt("a", 0.1, 0.0, 0.25), Attempt("b", 0.5, 1.0, 0.0)
    assert expected((dead, sure)) == (0.75, 1.0)
    assert expected((sure, dead)) == (0.5, 1.0)


def test_tiny_ratios_keep_their_delay() -> None:
    tiny = [Attempt("a", 1.0, 1e-200, 1.0), Attempt("b", 3.0, 1e-200, 1.0)]
    assert expected(tiny) == (pytest.approx(2.5), pytest.approx(2e-200))


two_orders = (general_attempts | tied_attempts).flatmap(
    lambda attempts: st.tuples(st.just(attempts), st.permutations(attempts))
)


@given(two_orders)
def test_the_delivery_ratio_does_not_depend_on_the_order(orders: tuple[list[Attempt], ...]) -> None:
    one, other = orders
    assert expected(one)[1] == pytest.approx(expected(other)[1])


# -- Theorem 1 --


def assert_best_of_all_orders(attempts: list[Attempt]) -> None:
    order = in_order(attempts)
    assert sorted(order, key=lambda attempt: attempt.neighbour) == attempts
    if not any(attempt.ratio for attempt in attempts):
        assert expected(order) == (inf, 0.0)
        return
    best_s = min(map(mean_delay_s, permutations(attempts)))
    assert isclose(mean_delay_s(order), best_s, rel_tol=1e-9, abs_tol=1e-12)
    assert isclose(expected(order)[0], best_s, rel_tol=1e-9, abs_tol=1e-12)


@settings(deadline=None, max_examples=250)
@given(paper_attempts | tied_paper_attempts)
@example([Attempt("a", 2.0, 1.0, 2.0), Attempt("b", 1.0, 0.5, 1.0), Attempt("c", 1.0, 0.0, 1.0)])
@example([Attempt("a", 2.0, 1.0, 2.0), Attempt("b", 1.0, 1.0, 1.0), Attempt("c", 0.25, 0.5, 0.25)])
def test_no_order_of_the_papers_attempts_is_better(attempts: list[Attempt]) -> None:
    assert_best_of_all_orders(attempts)


@settings(deadline=None, max_examples=250)
@given(general_attempts | tied_attempts)
@example([Attempt("a", 1.0, 0.5, 3.0), Attempt("b", 3.0, 0.5, 1.0), Attempt("c", 4.0, 1.0, 9.0)])
@example([Attempt("a", 1.0, 0.0, 0.0), Attempt("b", 3.0, 0.5, 0.0), Attempt("c", 2.0, 0.25, 0.0)])
def test_no_order_is_better_whatever_a_failure_costs(attempts: list[Attempt]) -> None:
    assert_best_of_all_orders(attempts)


inner = st.tuples(
    st.integers(1, 4).map(float), st.sampled_from((0.25, 0.5, 0.75)), st.integers(1, 4).map(float)
)


@settings(deadline=None, max_examples=60)
@given(st.lists(inner, min_size=2, max_size=4))
def test_every_best_order_is_sorted_by_the_price(rows: list[tuple[float, float, float]]) -> None:
    """Theorem 1's other half, in exact numbers: the price is necessary, not only sufficient."""
    attempts = as_fractions([Attempt("", *row) for row in rows])
    costs = {order: enumerated(list(order))[0] for order in permutations(attempts)}
    for order, cost in costs.items():
        prices = [s + f * (1 - r) / r for s, r, f in order]
        assert (cost == min(costs.values())) == (prices == sorted(prices))


@given(paper_attempts)
def test_the_papers_order_is_by_delay_over_ratio(attempts: list[Attempt]) -> None:
    able = [attempt for attempt in in_order(attempts) if attempt.ratio]
    quotients = [attempt.delay_s / attempt.ratio for attempt in able]
    assert quotients == pytest.approx(sorted(quotients))


def test_equals_are_ordered_by_name_however_they_come() -> None:
    attempts = [
        Attempt("b", 1.0, 0.5, 1.0),
        Attempt("a", 2.0, 1.0, 2.0),
        Attempt("c", 1.5, 0.5, 0.5),
    ]
    for order in permutations(attempts):
        assert [attempt.neighbour for attempt in in_order(order)] == ["a", "b", "c"]


def test_what_cannot_succeed_is_last_even_behind_what_never_ends() -> None:
    attempts = [
        Attempt("a", 0.0, 0.0, 0.0),
        Attempt("b", inf, 0.0, inf),
        Attempt("c", 1.0, 1.0, inf),
        Attempt("d", 9.0, 0.5, 0.0),
        Attempt("e", inf, 0.5, 0.0),
        Attempt("f", 1.0, 0.5, inf),
    ]
    for order in permutations(attempts):
        assert [attempt.neighbour for attempt in in_order(order)] == ["c", "d", "e", "f", "a", "b"]


# -- attempts --


@given(milliseconds, tenths, st.integers(1, 4), milliseconds, tenths)
def test_a_paper_attempt_is_equation_2(
    alpha: Fraction, gamma: Fraction, m: int, onward: Fraction, onward_ratio: Fraction
) -> None:
    link, taken = equation_1(alpha, gamma, m)
    attempt = paper_attempt("a", float(alpha), float(gamma), m, float(onward), float(onward_ratio))
    assert attempt.delay_s == pytest.approx(float(link + onward))
    assert attempt.ratio == pytest.approx(float(taken * onward_ratio))
    assert attempt.failure_s == attempt.delay_s


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
def test_an_exact_attempt_agrees_with_chance(
    case: tuple[float, float, int, float, float, float],
) -> None:
    attempt = exact_attempt("a", *case)
    succeeded_s, failed_s = all_attempts(*case)
    assert_mean(succeeded_s, attempt.delay_s)
    assert_mean(failed_s, attempt.failure_s)
    assert len(succeeded_s) / 400_000 == pytest.approx(attempt.ratio, abs=4 * 0.5 / sqrt(400_000))


def test_where_failure_is_impossible_it_costs_nothing() -> None:
    assert exact_attempt("a", 0.03, 1.0, 2, 0.06, 0.05, 1.0) == Attempt("a", 0.03 + 0.05, 1.0, 0.0)


def test_a_dead_link_costs_all_its_timeouts_whatever_lies_behind_it() -> None:
    for onward in ((0.0, 1.0), (0.05, 0.5), (inf, 0.0)):
        assert exact_attempt("a", 0.03, 0.0, 2, 0.06, *onward) == Attempt("a", inf, 0.0, 0.12)


def test_the_papers_order_is_not_the_best_for_what_failures_cost() -> None:
    """A sure link to a doubtful broker, and a doubtful link whose failure shows after a timeout."""
    links = {"a": (0.010, 1.0), "b": (0.100, 0.5)}  # delay and delivery ratio, sent once
    onwards = {"a": (0.100, 0.5), "b": (0.000, 1.0)}
    papers = [paper_attempt(name, *links[name], 1, *onwards[name]) for name in "ab"]
    exact = {
        name: exact_attempt(name, *links[name], 1, 2 * links[name][0], *onwards[name])
        for name in "ab"
    }
    as_in_paper = [exact[attempt.neighbour] for attempt in in_order(papers)]
    assert [attempt.neighbour for attempt in as_in_paper] == ["b", "a"]
    assert [attempt.neighbour for attempt in in_order(exact.values())] == ["a", "b"]
    assert expected(as_in_paper)[0] == pytest.approx(0.170)
    assert expected(in_order(exact.values()))[0] == pytest.approx(0.440 / 3)


# -- numbers at the edge --

any_delay_s = st.floats(0.0, 1e308) | st.sampled_from((0.0, 5e-324, inf))
any_ratio = st.floats(0.0, 1.0) | st.sampled_from((0.0, 5e-324, 1e-300, 1.0 - 2**-53, 1.0))
edge_attempts = lists_of(st.tuples(any_delay_s, any_ratio, any_delay_s))


@given(edge_attempts)
def test_nothing_expected_is_ever_not_a_number(attempts: list[Attempt]) -> None:
    for order in (attempts, in_order(attempts)):
        delay_s, ratio = expected(order)
        assert delay_s >= 0.0
        assert 0.0 <= ratio <= 1.0
        assert (ratio == 0.0) == (not any(attempt.ratio for attempt in attempts))
    able = [attempt.ratio > 0.0 for attempt in in_order(attempts)]
    assert able == sorted(able, reverse=True)


@given(any_delay_s, any_ratio, st.integers(1, 5), any_delay_s, any_delay_s, any_ratio)
def test_no_attempt_is_ever_made_of_what_is_not_a_number(
    link_s: float, ratio: float, m: int, timeout_s: float, onward_s: float, onward_ratio: float
) -> None:
    for attempt in (
        paper_attempt("a", link_s, ratio, m, onward_s, onward_ratio),
        exact_attempt("a", link_s, ratio, m, timeout_s, onward_s, onward_ratio),
    ):
        assert not any(map(isnan, (attempt.delay_s, attempt.ratio, attempt.failure_s)))
        assert 0.0 <= attempt.ratio <= 1.0
