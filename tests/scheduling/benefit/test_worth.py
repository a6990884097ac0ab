"""The equations of bounded delay, beside a direct transcription and beside chance itself."""

from math import inf, isfinite, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, ValidationError, msgpack
from scipy.stats import norm
from support.builders import a_message
from support.curves import curves_owed, instants
from support.prospects import Known

from tidings.core.contract import Contract, Destination, Group, destination
from tidings.core.errors import ConfigError
from tidings.core.links.estimates import LinkEstimate
from tidings.core.links.outlook import Outlook, outlook
from tidings.core.parcel import Parcel
from tidings.scheduling.benefit.queue import Benefit
from tidings.scheduling.benefit.worth import benefit, worth
from tidings.scheduling.benefit.worth_over_time import WorthOverTime
from tidings.scheduling.chances import Curve, curves_of, success
from tidings.scheduling.options import BenefitOptions


class Wish(Struct, frozen=True):
    """One subscription of the paper's table: its broker, adl and price."""

    broker: str
    allowed_s: float
    price: float


class Case(Struct, frozen=True):
    """A message that waits, the paths beyond, and all that the equations speak of."""

    size_bytes: int
    age_s: float  # hdl
    first_s: float  # FT
    weight: float  # r
    paths: dict[str, list[LinkEstimate]]
    wishes: list[Wish]

    def parcel(self, now: float) -> Parcel:
        brokers = sorted({wish.broker for wish in self.wishes})
        owed = tuple(self._destination(broker) for broker in brokers)
        return Parcel(a_message(), now - self.age_s, inf, owed, ("b1",), "d-tree", self.size_bytes)

    def _destination(self, broker: str) -> Destination:
        """By the broker's own way of grouping subscriptions."""
        there = [wish for wish in self.wishes if wish.broker == broker]
        stated = [(Contract(deadline_s=w.allowed_s, price=w.price), 1) for w in there]
        return destination(broker, Contract(), stated)

    def curves(self, now: float) -> tuple[Curve, ...]:
        ways = {broker: outlook(path) for broker, path in self.paths.items()}
        return curves_of(self.parcel(now), Known(ways))


links = st.builds(
    LinkEstimate,
    delay_s=st.floats(0.0, 0.1),
    s_per_byte=st.floats(1e-5, 1e-4),
    deviation_s_per_byte=st.floats(1e-6, 3e-5),
)
brokers = st.sampled_from(["b2", "b3", "b4"])
wishes = st.builds(
    Wish, brokers, st.one_of(st.just(inf), st.floats(0.5, 40.0)), st.floats(0.0, 5.0)
)
cases = st.builds(
    Case,
    size_bytes=st.integers(1_000, 100_000),
    age_s=st.floats(0.0, 20.0),
    first_s=st.floats(0.0, 10.0),
    weight=st.floats(0.0, 1.0),
    paths=st.fixed_dictionaries(
        {b: st.lists(links, min_size=1, max_size=4) for b in ("b2", "b3", "b4")}
    ),
    wishes=st.lists(wishes, min_size=1, max_size=8),
)
NOW = 100.0


def success_by_the_paper(case: Case, wish: Wish, postponed_s: float = 0.0) -> float:
    """Eq. 4 to 7: hdl + NN PD + size TR (+ FT) <= adl, TR normal with summed mean and variance."""
    path = case.paths[wish.broker]
    processing_s = sum(link.delay_s for link in path)
    mean = sum(link.s_per_byte for link in path)
    deviation = sqrt(sum(link.deviation_s_per_byte**2 for link in path))
    left_s = wish.allowed_s - case.age_s - processing_s - postponed_s
    return float(norm.cdf(left_s / case.size_bytes, loc=mean, scale=deviation))


def benefit_by_the_paper(case: Case, postponed_s: float = 0.0) -> float:
    """Eq. 3 and 8, subscription by subscription."""
    return sum(success_by_the_paper(case, w, postponed_s) * w.price for w in case.wishes)


@given(cases)
def test_success_equals_the_papers_equation(case: Case) -> None:
    for wish in case.wishes:
        alone = Case(case.size_bytes, case.age_s, 0.0, 1.0, case.paths, [wish])
        (curve,) = alone.curves(NOW)
        assert success(curve, NOW) == pytest.approx(success_by_the_paper(case, wish), abs=1e-9)


@given(cases)
def test_benefit_and_postponing_cost_and_their_sum_equal_the_papers_equations(case: Case) -> None:
    curves = case.curves(NOW)
    eb, postponed = benefit_by_the_paper(case), benefit_by_the_paper(case, case.first_s)
    ebpc = case.weight * eb + (1 - case.weight) * (eb - postponed)  # Eq. 9 and 10
    assert benefit(curves, NOW) == pytest.approx(eb, abs=1e-8)
    assert worth(curves, NOW, 1.0, case.first_s) == pytest.approx(eb, abs=1e-8)
    assert worth(curves, NOW, 0.0, case.first_s) == pytest.approx(eb - postponed, abs=1e-8)
    assert worth(curves, NOW, case.weight, case.first_s) == pytest.approx(ebpc, abs=1e-8)


@settings(max_examples=25)
@given(cases, st.integers(0, 2**32 - 1))
def test_the_equations_foretell_what_drawn_rates_earn(case: Case, seed: int) -> None:
    chance, runs = np.random.default_rng(seed), 4_000
    earned = {0.0: np.zeros(runs), case.first_s: np.zeros(runs)}
    for wish in case.wishes:
        took_s = np.full(runs, case.age_s)
        for link in case.paths[wish.broker]:
            rates = chance.normal(link.s_per_byte, link.deviation_s_per_byte, runs)
            took_s += link.delay_s + case.size_bytes * rates
        for postponed_s, sums in earned.items():
            sums += wish.price * (took_s + postponed_s <= wish.allowed_s)
    tolerance = 6 * sum(w.price for w in case.wishes) / sqrt(runs) / 2 + 1e-9
    curves = case.curves(NOW)
    assert benefit(curves, NOW) == pytest.approx(earned[0.0].mean(), abs=tolerance)
    cost = earned[0.0].mean() - earned[case.first_s].mean()
    assert worth(curves, NOW, 0.0, case.first_s) == pytest.approx(cost, abs=tolerance)


@given(cases, st.floats(0.1, 10.0), st.floats(0.0, 30.0))
def test_prices_scale_out(case: Case, times: float, later_s: float) -> None:
    dearer = [Wish(w.broker, w.allowed_s, w.price * times) for w in case.wishes]
    scaled = Case(
        case.size_bytes, case.age_s, case.first_s, case.weight, case.paths, dearer
    ).curves(NOW)
    at = NOW + later_s
    assert worth(scaled, at, case.weight, case.first_s) == pytest.approx(
        times * worth(case.curves(NOW), at, case.weight, case.first_s), abs=1e-8
    )


@given(st.lists(brokers, min_size=1, max_size=6), st.floats(0.1, 60.0))
def test_the_publishers_deadline_is_the_subscribers_with_price_one(
    homes: list[str], deadline_s: float
) -> None:
    for broker in set(homes):
        count = homes.count(broker)
        by_publisher = destination(broker, Contract(deadline_s=deadline_s), [(Contract(), count)])
        stated = Contract(deadline_s=deadline_s, price=1.0)
        assert by_publisher == destination(broker, Contract(), [(stated, count)])


@given(st.floats(0.1, 60.0), st.floats(0.1, 60.0), st.floats(0.0, 60.0))
def test_of_two_deadlines_the_tighter_holds(published_s: float, wished_s: float, at: float) -> None:
    known = Known({"b2": Outlook(1, 0.01, 1e-5, 1e-12)})
    both = destination("b2", Contract(deadline_s=published_s), [(Contract(deadline_s=wished_s), 1)])
    tighter = destination("b2", Contract(), [(Contract(deadline_s=min(published_s, wished_s)), 1)])
    curves = [
        curves_of(Parcel(a_message(), 0.0, inf, (owed,), ("b1",), "d-tree", 1_000), known)
        for owed in (both, tighter)
    ]
    assert benefit(curves[0], at) == benefit(curves[1], at)


# ---- what is kept for quick answers answers as the equations do


weights = st.one_of(st.just(0.0), st.just(0.8), st.floats(0.0, 0.999999))


@given(curves_owed, instants, st.one_of(st.just(1.0), weights), st.floats(0.0, 10.0))
def test_the_worth_at_an_instant_is_what_the_plain_sum_is(
    owed: tuple[Curve, ...], at: float, weight: float, first_s: float
) -> None:
    expected = worth(owed, at, weight, first_s)
    assert WorthOverTime(owed).at(at, weight, first_s) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=300)
@given(
    curves_owed, instants, st.floats(0.0, 40.0), st.floats(0.0, 1.0), weights, st.floats(0.01, 10)
)
def test_no_worth_exceeds_its_bound_within_the_time_stated(
    owed: tuple[Curve, ...],
    start: float,
    lasts_s: float,
    part: float,
    weight: float,
    first_s: float,
) -> None:
    over_time, end = WorthOverTime(owed), start + lasts_s
    most = over_time.most(start, end, weight, first_s)
    at = min(end, start + part * lasts_s)
    assert worth(owed, at, weight, first_s) <= most + 1e-12
    assert worth(owed, at, weight, first_s) <= over_time.roughly_most(start, end, weight, first_s)
    assert most <= over_time.most(start, inf, weight, first_s) + 1e-9


@given(curves_owed, instants, st.floats(0.0, 1.0), weights, st.floats(0.0, 10.0))
def test_what_is_steady_does_not_move_by_a_single_bit(
    owed: tuple[Curve, ...], start: float, part: float, weight: float, first_s: float
) -> None:
    over_time = WorthOverTime(owed)
    until = min(over_time.steady_until(start, first_s), start + 1_000.0)
    assert until >= start
    at = min(until, start + part * (until - start))
    assert over_time.at(at, weight, first_s) == over_time.at(start, weight, first_s)


# ---- what makes no sense, or hardly any


def test_a_negative_price_cannot_be_stated() -> None:
    with pytest.raises(ConfigError, match="price"):
        Contract(price=-1.0).checked("test")
    with pytest.raises(ValidationError):
        msgpack.decode(msgpack.encode(Group(1.0, 1, -1.0)), type=Group)


def test_no_number_that_is_none_comes_over_the_wire() -> None:
    for group in (Group(float("nan"), 1, 1.0), Group(1.0, 1, float("nan"))):
        with pytest.raises(ValidationError):
            msgpack.decode(msgpack.encode(group), type=Group)


def test_a_price_beyond_all_bounds_still_gives_a_number() -> None:
    groups = (Group(1.0, 1, inf), Group(5.0, 1, inf))
    parcel = Parcel(a_message(), 0.0, inf, (Destination("b2", inf, groups),), ("b1",), "d-tree", 9)
    queue = Benefit(Known(s_per_byte=0.1), BenefitOptions(), 0.2)
    queue.push(parcel, 0.0)
    for now in (0.0, 0.5, 1.5, 9.0):
        assert isfinite(queue.worth(parcel, now))
    assert queue.pop(0.5) is parcel


def test_nothing_is_owed_for_nothing() -> None:
    assert (
        benefit((), 0.0) == worth((), 0.0, 0.3, 1.0) == WorthOverTime(()).at(0.0, 0.3, 1.0) == 0.0
    )


def test_without_variance_a_message_is_in_time_up_to_the_very_instant() -> None:
    curve = Curve(5.0, 0.0, 2.0)
    assert [success(curve, at) for at in (4.0, 5.0, 5.000001)] == [1.0, 1.0, 0.0]
    assert worth((curve,), 4.5, 0.0, 1.0) == 2.0  # sent one place later, it is late


def test_without_a_deadline_a_message_is_always_in_time_and_never_urgent() -> None:
    curve = (Curve(inf, 1.0, 3.0),)
    assert worth(curve, 1e9, 1.0, 5.0) == 3.0
    assert worth(curve, 1e9, 0.0, 5.0) == 0.0
