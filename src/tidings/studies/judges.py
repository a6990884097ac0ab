"""When does a claim hold? One rule for each kind, over all the numbers that it is about.

Where several strategies or several x are meant, all must hold, and the worst of them decides.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf, isnan
from typing import NamedTuple

from tidings.studies.wording import X, x_text

Series = list[tuple[X, float]]  # our number at each x
SeriesOfStrategies = dict[str, Series]

GRAIN = 1e-9  # as floats are not exact: 0.3 - 0.1 is a little less than 0.2


class Judged(NamedTuple):
    holds: bool
    ours: float  # the worst of our numbers
    where: str  # that is


def near(series: SeriesOfStrategies, expected: float, tolerance: float) -> Judged:
    """Within the tolerance of what is expected."""
    return _worst(series, lambda ours: abs(ours - expected) - tolerance)


def at_least(series: SeriesOfStrategies, expected: float, tolerance: float) -> Judged:
    return _worst(series, lambda ours: expected - ours - tolerance)


def at_most(series: SeriesOfStrategies, expected: float, tolerance: float) -> Judged:
    return _worst(series, lambda ours: ours - expected - tolerance)


def rising(series: SeriesOfStrategies, expected: float, tolerance: float) -> Judged:
    """From the first x to the last; no step goes down by more than the tolerance."""
    return _worst_series(series, lambda numbers: _falls_by(numbers, tolerance))


def falling(series: SeriesOfStrategies, expected: float, tolerance: float) -> Judged:
    return _worst_series(series, lambda numbers: _falls_by([-n for n in numbers], tolerance))


def flat(series: SeriesOfStrategies, expected: float, tolerance: float) -> Judged:
    """Over x, the largest and the smallest differ by at most the tolerance."""
    spreads = {name: max(_numbers(rows)) - min(_numbers(rows)) for name, rows in series.items()}
    strategy = max(spreads, key=lambda name: spreads[name])
    return Judged(spreads[strategy] <= tolerance + GRAIN, spreads[strategy], f"{strategy}, spread")


def peaking(series: SeriesOfStrategies, expected: float, tolerance: float) -> Judged:
    """Largest at neither the first x nor the last, and below that in the end."""
    numbers = {name: _numbers(rows) for name, rows in series.items()}
    falls = {name: max(n) - max(n[0], n[-1]) - tolerance for name, n in numbers.items()}
    strategy = min(falls, key=lambda name: falls[name])
    rows = series[strategy]
    (peak_x, peak), (last_x, last) = max(rows, key=lambda row: row[1]), rows[-1]
    where = f"{strategy}, from its largest at {x_text(peak_x)} to {x_text(last_x)}"
    return Judged(falls[strategy] > GRAIN, last - peak, where)


JUDGES: dict[str, Callable[[SeriesOfStrategies, float, float], Judged]] = {
    "near": near,
    "at least": at_least,
    "at most": at_most,
    "rising": rising,
    "falling": falling,
    "flat": flat,
    "peaking": peaking,
}


def _worst(series: SeriesOfStrategies, excess: Callable[[float], float]) -> Judged:
    """The number that goes furthest beyond what is allowed; NaN goes further than any."""
    cases = [
        (excess(v), v, f"{name} at {x_text(x)}") for name, rows in series.items() for x, v in rows
    ]
    beyond, ours, where = max(cases, key=lambda case: inf if isnan(case[0]) else case[0])
    return Judged(beyond <= GRAIN, ours, where)


def _worst_series(series: SeriesOfStrategies, falls_by: Callable[[list[float]], float]) -> Judged:
    """The series that goes most against what is claimed; ours is its change from first to last."""
    cases = {name: falls_by(_numbers(rows)) for name, rows in series.items()}
    strategy = max(cases, key=lambda name: cases[name])
    (first_x, first), *_, (last_x, last) = series[strategy]
    where = f"{strategy}, from {x_text(first_x)} to {x_text(last_x)}"
    return Judged(cases[strategy] <= 0, last - first, where)


def _falls_by(numbers: list[float], tolerance: float) -> float:
    """More than 0 if the numbers do not rise: by their worst step, or as a whole."""
    steps = [before - after - tolerance - GRAIN for before, after in pairwise(numbers)]
    return max(*steps, GRAIN - (numbers[-1] - numbers[0]))


def _numbers(rows: Series) -> list[float]:
    return [number for _, number in rows]
