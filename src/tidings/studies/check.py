"""Can a study be argued with what its sweep makes? Found out when the file is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import isnan
from typing import TYPE_CHECKING

from tidings.core.errors import ConfigError
from tidings.pipeline.jobs.measure import LATENESS_CDF, MEASURES
from tidings.studies.claims import COURSES, Claim

if TYPE_CHECKING:
    from tidings.studies.spec import Study

LATENESS = "lateness"  # the x of a distribution, which no parameter gives
SEED = "run.seed"  # draws the topology


def check(study: Study) -> None:
    """A `ConfigError` for the first thing in the file that does not fit."""
    _check_figure(study)
    for metric in study.about.only:
        _among(metric, study.about.metrics, study.spec.source, "study.only")
    for claim in study.claims:
        _check_sides(claim, study)
        _check_rule(claim, study.spec.source)
    for name, times in Counter(claim.id for claim in study.claims).items():
        if times > 1:
            accepted = "an id that no other claim has"
            raise ConfigError(study.spec.source, "claim.id", name, accepted)


def _check_figure(study: Study) -> None:
    source, about, grid = study.spec.source, study.about, study.spec.grid
    if about.lines not in grid:
        raise ConfigError(source, "grid", list(grid), f"a grid with {about.lines}")
    parameters = [name for name in grid if name not in (about.lines, SEED)]
    _among(about.x, (*parameters, LATENESS), source, "study.x")
    if about.x != LATENESS and not all(isinstance(value, int | float) for value in grid[about.x]):
        raise ConfigError(source, f"grid.{about.x}", grid[about.x], "numbers, as they are on x")
    distributions = [name for name in MEASURES if name == LATENESS_CDF]
    numbers = [name for name in MEASURES if name not in distributions]
    for metric in about.metrics:
        accepted = distributions if about.x == LATENESS else numbers
        _among(metric, accepted, source, "study.metrics")
        _check_part(metric, study)


def _check_part(metric: str, study: Study) -> None:
    """A mean is over topologies alone, never over two values of a parameter."""
    source, about, grid = study.spec.source, study.about, study.spec.grid
    part, place = about.only.get(metric, {}), f"study.only.{metric}"
    for name, value in part.items():
        _among(name, grid, source, place)
        _among(value, grid[name], source, f"{place}.{name}")
    for name, values in grid.items():
        if len(values) > 1 and name not in (about.lines, about.x, SEED, *part):
            accepted = f"one value, or a value of it in {place}, as it is neither x nor the lines"
            raise ConfigError(source, f"grid.{name}", values, accepted)


def _check_sides(claim: Claim, study: Study) -> None:
    """A claim is about points that the study has."""
    source, place = study.spec.source, f"claim {claim.id}"
    _among(claim.setting, study.settings(), source, f"{place}: setting")
    for strategy in claim.strategies():
        for x in claim.xs(study.xs(claim.setting)):
            for key in claim.sides(strategy, x):
                _among(key.setting, study.settings(), source, f"{place}: setting")
                strategies = study.strategies(key.setting)
                _among(key.strategy, strategies, source, f"{place}: strategy")
                _among(key.metric, study.about.metrics, source, f"{place}: metric")
                _among(key.x, study.xs(key.setting), source, f"{place}: x")


def _check_rule(claim: Claim, source: str) -> None:
    place = f"claim {claim.id}"
    if claim.minus and claim.over:
        raise ConfigError(source, f"{place}: over", claim.over, "minus or over, not both")
    if claim.kind not in COURSES and isnan(claim.expected()):
        accepted = f"a number to be {claim.kind}, as the paper's figure is in words"
        raise ConfigError(source, f"{place}: value", claim.value, accepted)
    if claim.kind in COURSES and isinstance(claim.x, float | int):
        raise ConfigError(source, f"{place}: x", claim.x, f"several x, to be {claim.kind}")


def _among(value: object, accepted: Iterable[object], source: str, field: str) -> None:
    if value not in (known := tuple(accepted)):
        raise ConfigError(source, field, value, f"one of {', '.join(map(str, known))}")
