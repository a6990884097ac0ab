"""When does a claim hold? One rule for each kind, over all the numbers that it is about.

Where several strategies or several x are meant, all must hold, and the worst of them decides.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf, isnan
from typing import NamedTuple

from tidings.studies.wording import X, told

Series = dict[str, list[tuple[X, float]]]  # by strategy: x and our number
Course = list[float]

GRAIN = 1e-9  # or floats would refuse that 0.3 - 0.1 is 0.2


class Judged(NamedTuple):
    holds: bool
    ours: float  # the worst of our numbers
    where: str  # that is


def near(series: Series, expected: float, tolerance: float) -> Judged:
    """Within the tolerance of what is expected."""
    return _worst(series, lambda ours: abs(ours - expected) - tolerance)


def at_least(series: Series, expected: float, tolerance: float) -> Judged:
    return _worst(series, lambda ours: expected - ours - tolerance)


def at_most(series: Series, expected: float, tolerance: float) -> Judged:
    return _worst(series, lambda ours: ours - expected - tolerance)


def rising(series: Series, expected: float, tolerance: float) -> Judged:
    """From the first x to the last; no step goes down by more than the tolerance."""
    return _worst_course(series, lambda course: _falls_by(course, tolerance))


def falling(series: Series, expected: float, tolerance: float) -> Judged:
    return _worst_course(series, lambda course: _falls_by([-v for v in course], tolerance))


def flat(series: Series, expected: float, tolerance: float) -> Judged:
    """Over x, the largest and the smallest differ by at most the tolerance."""
    spreads = {name: max(_course(rows)) - min(_course(rows)) for name, rows in series.items()}
    strategy = max(spreads, key=lambda name: spreads[name])
    return Judged(spreads[strategy] <= tolerance + GRAIN, spreads[strategy], f"{strategy}, spread")


def peaking(series: Series, expected: float, tolerance: float) -> Judged:
    """Largest at neither the first x nor the last, and below that in the end."""
    courses = {name: _course(rows) for name, rows in series.items()}
    falls = {name: max(c) - max(c[0], c[-1]) - tolerance for name, c in courses.items()}
    strategy = min(falls, key=lambda name: falls[name])
    rows = series[strategy]
    (peak_x, peak), (last_x, last) = max(rows, key=lambda row: row[1]), rows[-1]
    where = f"{strategy}, from its largest at {told(peak_x)} to {told(last_x)}"
    return Judged(falls[strategy] > GRAIN, last - peak, where)


JUDGES: dict[str, Callable[[Series, float, float], Judged]] = {
    "near": near,
    "at least": at_least,
    "at most": at_most,
    "rising": rising,
    "falling": falling,
    "flat": flat,
    "peaking": peaking,
}


def _worst(series: Series, excess: Callable[[float], float]) -> Judged:
    """The number that goes beyond what is allowed by most; one that is none is beyond all."""
    cases = [
        (excess(v), v, f"{name} at {told(x)}") for name, rows in series.items() for x, v in rows
    ]
    beyond, ours, where = max(cases, key=lambda case: inf if isnan(case[0]) else case[0])
    return Judged(beyond <= GRAIN, ours, where)


def _worst_course(series: Series, falls_by: Callable[[Course], float]) -> Judged:
    """The course over x that goes most against what is claimed; ours is its whole change."""
    cases = {name: falls_by(_course(rows)) for name, rows in series.items()}
    strategy = max(cases, key=lambda name: cases[name])
    (first_x, first), *_, (last_x, last) = series[strategy]
    where = f"{strategy}, from {told(first_x)} to {told(last_x)}"
    return Judged(cases[strategy] <= 0, last - first, where)


def _falls_by(course: Course, tolerance: float) -> float:
    """More than 0 if the course does not rise: by its worst step, or as a whole."""
    steps = [before - after - tolerance - GRAIN for before, after in pairwise(course)]
    return max(*steps, GRAIN - (course[-1] - course[0]))


def _course(rows: list[tuple[X, float]]) -> Course:
    return [number for _, number in rows]
