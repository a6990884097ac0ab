"""What does a sweep vary? A spec in TOML becomes points, each a whole scenario.

A spec
------
    name = "mesh20"                        # absent: the name of the file
    scenario = "../scenarios/mesh20.toml"  # relative to this file
    [grid]
    "broker.strategy" = ["d-tree", "r-tree"]
    "links.failure_probability" = [0.0, 0.02]
    "run.seed" = { from = 1, count = 3 }
    [setting.paper]                        # optional: what changes together, under a name
    "links.ack" = "instant"
    "broker.ack_timer" = 1.0
    [quick]                                # optional: other values of the grid, for a short look
    "run.seconds" = [600]

Any parameter of the scenario may be in the grid. With settings, the grid is run once for each; a
setting that names a parameter of the grid narrows it. A study adds `[study]` and `[[claim]]` to
such a file.

A point
-------
A point is named by the digest of its scenario, so the name says what made the result. Two points of
one name would be the same work twice, and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from tidings.core.document import convert, culprit
from tidings.core.errors import ConfigError
from tidings.files.document_kinds import check_kind
from tidings.files.toml import read_toml
from tidings.pipeline.sweep.parameters import MAX_POINTS, Setting, parse_grid, parse_setting
from tidings.scenarios.read import parse
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.setup import Setup

Progress = Callable[[int, int], None]  # called with the points that are done, and all points


class _Document(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str = ""
    scenario: str
    grid: dict[str, Any]
    setting: dict[str, dict[str, Any]] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)
    study: Any = None  # read by the studies
    claim: Any = None


class Spec(Struct, frozen=True):
    """A sweep: a scenario, and the values that some of its parameters take."""

    name: str
    scenario: Path
    grid: dict[str, tuple[Any, ...]]
    source: str
    settings: dict[str, Setting] = field(default_factory=dict)
    quick: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def grid_of(self, setting: str) -> dict[str, tuple[Any, ...]]:
        """What is varied in a setting; the name is empty where there is none."""
        return self.grid | self.settings[setting].narrowed if setting else self.grid

    def quickened(self) -> Spec:
        """The short look, under a name of its own: it shares nothing with the whole."""
        return msgspec.structs.replace(
            self, name=f"{self.name}-quick", grid=self.grid | self.quick, quick={}
        )


class Point(Struct, frozen=True):
    """One combination of the grid's values, in one of the settings."""

    name: str
    parameters: dict[str, Any]  # of the grid; and the name of the `setting`, where there is one
    scenario: Scenario


def read_spec(path: Path) -> Spec:
    """The sweep that a file describes; what is wrong with it is one clear `ConfigError`."""
    source = str(path)
    table = read_toml(path)
    check_kind(table, "a sweep", source)
    document = convert(table, _Document, source)
    name = document.name or path.stem
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        accepted = "letters, digits, '.', '_' and '-', as it names a folder"
        raise ConfigError(source, "name", name, accepted)
    grid = parse_grid(document.grid, "grid", source)
    quick = parse_grid(document.quick, "quick", source)
    settings = {
        name: parse_setting(table, grid | quick, f"setting.{name}", source)
        for name, table in document.setting.items()
    }
    spec = Spec(name, path.parent / document.scenario, grid, source, settings, quick)
    _check_size(spec)
    return spec


def points_of(spec: Spec) -> list[Point]:
    """All points, in the order of the grid; every scenario among them is checked."""
    document = read_toml(spec.scenario, f"{spec.source}: scenario")
    set_up(parse(document, *_place(spec)))  # a fault of the scenario itself is not one of the grid
    points: dict[str, Point] = {}
    for parameters, changes in _combinations(spec):
        setup = _setup(spec, document, parameters, changes)
        point = Point(setup.digest, parameters, setup.scenario)
        if point.name in points:
            first = points[point.name].parameters
            accepted = f"values that change the scenario (it is the same with {first})"
            raise ConfigError(spec.source, "grid", parameters, accepted)
        points[point.name] = point
    return list(points.values())


def _check_size(spec: Spec) -> None:
    names = spec.settings or ("",)
    count = sum(prod(map(len, spec.grid_of(name).values())) for name in names)
    if count > MAX_POINTS:
        raise ConfigError(spec.source, "grid", f"{count} points", f"at most {MAX_POINTS} points")


def _combinations(spec: Spec) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The parameters of each point, and what its setting changes besides."""
    for name in spec.settings or ("",):
        named = {"setting": name} if name else {}
        changes = spec.settings[name].changes if name else {}
        grid = spec.grid_of(name)
        for values in product(*grid.values()):
            yield named | dict(zip(grid, values, strict=True)), changes


def _place(spec: Spec) -> tuple[str, str]:
    """The scenario's file, and the folder that file names in it are relative to."""
    return str(spec.scenario), str(spec.scenario.parent.absolute())


def _setup(
    spec: Spec, document: dict[str, Any], parameters: Mapping[str, Any], changes: dict[str, Any]
) -> Setup:
    setting = parameters.get("setting")
    swept = {name: value for name, value in parameters.items() if name != "setting"}
    try:
        return set_up(parse(document, *_place(spec), changes | swept))
    except ConfigError as error:
        field, value = "grid", dict(parameters)
        if parameter := culprit(error.field, swept):
            field, value = f"grid.{parameter}", parameters[parameter]
        elif parameter := culprit(error.field, changes):
            field, value = f"setting.{setting}.{parameter}", changes[parameter]
        raise ConfigError(spec.source, field, value, error.accepted) from None
