"""What does a sweep vary? A spec in TOML becomes points, each a whole scenario.

    name = "mesh20"
    scenario = "../scenarios/mesh20.toml"  # relative to this file
    [grid]
    "broker.strategy" = ["d-tree", "r-tree"]
    "links.failure_probability" = [0.0, 0.02]
    "run.seed" = { from = 1, count = 3 }

Any parameter of the scenario may be in the grid. A point is named by the digest of its scenario, so
the name says what made the result; two points of one name would be the same work twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tidings.core.document import convert, read_toml
from tidings.core.errors import ConfigError
from tidings.sim.scenario import Scenario, load

MAX_POINTS = 100_000  # a grid beyond this is a slip: a day of work at a second each

# The tables of a scenario whose fields can be swept; `live` changes no simulation.
SECTIONS = ("run", "topology", "links", "broker", "workload", "faults")


class Span(Struct, frozen=True, forbid_unknown_fields=True, rename={"first": "from"}):
    """So many whole numbers from the first one."""

    first: int
    count: Annotated[int, Meta(ge=1, le=MAX_POINTS)]


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    scenario: str
    grid: dict[str, Any]


class Spec(Struct, frozen=True):
    """A sweep: a scenario, and the values that some of its parameters take."""

    name: str
    scenario: Path
    grid: dict[str, tuple[Any, ...]]
    source: str


class Point(Struct, frozen=True):
    """One combination of the grid's values."""

    name: str
    parameters: dict[str, Any]
    scenario: Scenario


def read_spec(path: Path) -> Spec:
    """The sweep that a file describes; what is wrong with it is one clear `ConfigError`."""
    document = convert(read_toml(path), _Document, str(path))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", document.name):
        accepted = "letters, digits, '.', '_' and '-', as it names a folder"
        raise ConfigError(str(path), "name", document.name, accepted)
    grid = dict(_flat(document.grid, "", str(path)))
    spec = Spec(document.name, path.parent / document.scenario, grid, str(path))
    _check_grid(spec)
    return spec


def points_of(spec: Spec) -> list[Point]:
    """All points, in the order of the grid; every scenario among them is checked."""
    load(spec.scenario)  # a fault that is here already is none of the grid's
    points: dict[str, Point] = {}
    for parameters in _combinations(spec):
        scenario = _scenario(spec, parameters)
        point = Point(scenario.digest(), parameters, scenario)
        if point.name in points:
            first = points[point.name].parameters
            accepted = f"values that change the scenario (it is the same with {first})"
            raise ConfigError(spec.source, "grid", parameters, accepted)
        points[point.name] = point
    return list(points.values())


def _flat(table: dict[str, Any], prefix: str, source: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Parameters and their values; in TOML a dotted name without quotes means nested tables."""
    for name, values in table.items():
        if isinstance(values, dict) and not {"from", "count"} & values.keys():
            yield from _flat(values, f"{prefix}{name}.", source)
        else:
            yield f"{prefix}{name}", _values(values, f"grid.{prefix}{name}", source)


def _values(values: Any, field: str, source: str) -> tuple[Any, ...]:
    try:
        chosen = msgspec.convert(values, list[Any] | Span)
    except msgspec.ValidationError:
        accepted = f"a list of values, or {{ from = 1, count = 10 }} with up to {MAX_POINTS}"
        raise ConfigError(source, field, values, accepted) from None
    if isinstance(chosen, Span):
        return tuple(range(chosen.first, chosen.first + chosen.count))
    return tuple(chosen)


def _check_grid(spec: Spec) -> None:
    count = 1
    for parameter, values in spec.grid.items():
        section, _, field = parameter.partition(".")
        if section not in SECTIONS or not field or "." in field:
            accepted = (
                "a parameter of the scenario with its table, such as links.loss_ratio (tables: "
                f"{', '.join(SECTIONS)})"
            )
            raise ConfigError(spec.source, "grid", parameter, accepted)
        if not values:
            raise ConfigError(spec.source, f"grid.{parameter}", [], "at least one value")
        count *= len(values)
    if count > MAX_POINTS:
        raise ConfigError(spec.source, "grid", f"{count} points", f"at most {MAX_POINTS} points")


def _combinations(spec: Spec) -> Iterator[dict[str, Any]]:
    for values in product(*spec.grid.values()):
        yield dict(zip(spec.grid, values, strict=True))


def _scenario(spec: Spec, parameters: dict[str, Any]) -> Scenario:
    try:
        scenario = load(spec.scenario, parameters)
        return msgspec.structs.replace(scenario, folder=str(spec.scenario.parent.absolute()))
    except ConfigError as error:
        parameter = _culprit(error.field, parameters)
        if parameter is None:
            raise ConfigError(spec.source, "grid", parameters, error.accepted) from None
        field, value = f"grid.{parameter}", parameters[parameter]
        raise ConfigError(spec.source, field, value, error.accepted) from None


def _culprit(field: str, parameters: dict[str, Any]) -> str | None:
    """The parameter of the grid that an error about a field of the scenario is about."""
    for parameter in parameters:
        if parameter == field or field.startswith(parameter + "["):
            return parameter
    names = [parameter for parameter in parameters if parameter.endswith(f".{field}")]
    return names[0] if len(names) == 1 else None
