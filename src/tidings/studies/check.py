"""Can a study be argued with what its sweep makes? Found out when the file is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING

from tidings.core.errors import ConfigError, one_of
from tidings.pipeline.analyse.question import MEASURES
from tidings.pipeline.sweep.grid import Spec
from tidings.pipeline.transforms.metrics import SEED
from tidings.studies.about import READ_WITH, SERIES_OVER, SUBSCRIBER, About
from tidings.studies.claims import EVERY, TRENDS, Claim

if TYPE_CHECKING:
    from tidings.studies.spec import Study


def check_figure(about: About, spec: Spec) -> None:
    """A `ConfigError` for the first thing in the figure that does not fit."""
    source, grid = spec.source, spec.grid
    if about.lines not in grid:
        raise ConfigError(source, "grid", list(grid), f"a grid with {about.lines}")
    parameters = [name for name in grid if name not in (about.lines, SEED)]
    _among(about.x, (*parameters, *SERIES_OVER), source, "study.x")
    if about.x in grid and not all(isinstance(value, int | float) for value in grid[about.x]):
        raise ConfigError(source, f"grid.{about.x}", grid[about.x], "numbers, as they are on x")
    _check_series(about, source)
    for metric in about.metrics:
        _among(metric, MEASURES[about.over()], source, "study.metrics")
        _check_part(metric, about, spec)
    for metric in about.only:
        _among(metric, about.metrics, source, "study.only")
    for setting in about.settings:
        _among(setting, spec.settings, source, "study.settings")


def check_claims(study: Study) -> None:
    """A `ConfigError` for the first claim that cannot be judged."""
    source = study.spec.source
    for claim in study.claims:
        _check_sides(claim, study)
        _check_rule(claim, source)
        if study.about.x == SUBSCRIBER and claim.kind in TRENDS:
            accepted = "near, at least or at most, as subscribers have no order"
            raise ConfigError(source, f"claim {claim.id}: kind", claim.kind, accepted)
    for name, times in Counter(claim.id for claim in study.claims).items():
        if times > 1:
            raise ConfigError(source, "claim.id", name, "an id that no other claim has")


def _check_series(about: About, source: str) -> None:
    """Fields that say how a series is read belong to a figure that shows one."""
    for name, xs in READ_WITH.items():
        value = getattr(about, name)
        if value is not None and about.x not in xs:
            accepted = f"nothing, unless x is {' or '.join(xs)}"
            raise ConfigError(source, f"study.{name}", value, accepted)
    if about.at and not all(before < after for before, after in pairwise(about.at)):
        raise ConfigError(source, "study.at", about.at, "numbers that rise")
    if about.x == SUBSCRIBER and about.scale == "log":
        raise ConfigError(source, "study.scale", about.scale, "linear, as x is subscribers")


def _check_part(metric: str, about: About, spec: Spec) -> None:
    """A mean is over topologies alone, never over two values of a parameter."""
    source, grid = spec.source, spec.grid
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
                _among(key.x, study.places(key.setting), source, f"{place}: x")


def _check_rule(claim: Claim, source: str) -> None:
    place = f"claim {claim.id}"
    if claim.minus and claim.over:
        raise ConfigError(source, f"{place}: over", claim.over, "minus or over, not both")
    if claim.kind not in TRENDS and isnan(claim.expected()):
        accepted = f"a number to be {claim.kind}, as the paper's figure is in words"
        raise ConfigError(source, f"{place}: value", claim.value, accepted)
    if claim.kind in TRENDS and claim.x != EVERY and not isinstance(claim.x, tuple):
        raise ConfigError(source, f"{place}: x", claim.x, f"several x, to be {claim.kind}")


def _among(value: object, accepted: Iterable[object], source: str, field: str) -> None:
    if value not in (known := tuple(accepted)):
        raise ConfigError(source, field, value, one_of(map(str, known), value))
