"""How are values written in a spec? As tables of parameters, which become flat and checked.

In TOML a dotted name without quotes means nested tables, so `links.loss_ratio = [0.1]` and
`"links.loss_ratio" = [0.1]` are the same. A parameter may lie deeper: `broker.dcrd.order`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tidings.core.document import field_names
from tidings.core.errors import ConfigError
from tidings.core.near_names import suggestion
from tidings.sim.scenario import Scenario

MAX_POINTS = 100_000  # a grid beyond this is a slip: a day of work at a second each

# The tables of a scenario whose fields can be swept; `live` changes no simulation.
SECTIONS = ("run", "topology", "links", "broker", "workload", "faults", "dynamics")


class IntegerRange(Struct, frozen=True, forbid_unknown_fields=True, rename={"first": "from"}):
    """So many whole numbers from the first one."""

    first: int
    count: Annotated[int, Meta(ge=1, le=MAX_POINTS)]


class Setting(Struct, frozen=True):
    """Parameters that change together, under a name: one line of a figure."""

    changes: dict[str, Any]
    narrowed: dict[str, tuple[Any, ...]]  # parameters of the grid that take fewer values here


def parse_grid(table: dict[str, Any], place: str, source: str) -> dict[str, tuple[Any, ...]]:
    """Parameters and the values that each takes."""
    found = {
        name: _values(values, f"{place}.{name}", source) for name, values in _flattened(table, "")
    }
    for name in found:
        _check_name(name, place, source)
    return found


def parse_setting(table: dict[str, Any], grid: dict[str, Any], place: str, source: str) -> Setting:
    """Of the parameters in a setting, those of the grid are narrowed, the others are changed."""
    values = dict(_flattened(table, ""))
    for name in values:
        _check_name(name, place, source)
    narrowed = {
        name: _values(_as_list(value), f"{place}.{name}", source)
        for name, value in values.items()
        if name in grid
    }
    changes = {name: value for name, value in values.items() if name not in grid}
    return Setting(_with_whole_topology(changes), narrowed)


def _with_whole_topology(changes: dict[str, Any]) -> dict[str, Any]:
    """Another kind of topology takes the place of the scenario's, whose parameters it has not."""
    if "topology.kind" not in changes:
        return changes
    whole = {
        name.partition(".")[2]: value
        for name, value in changes.items()
        if name.startswith("topology.")
    }
    others = {name: v for name, v in changes.items() if not name.startswith("topology.")}
    return {"topology": whole} | others


def _flattened(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, values in table.items():
        if isinstance(values, dict) and not {"from", "count"} & values.keys():
            yield from _flattened(values, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", values


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | dict) else [value]


def _values(values: Any, field: str, source: str) -> tuple[Any, ...]:
    try:
        chosen = msgspec.convert(values, list[Any] | IntegerRange)
    except msgspec.ValidationError:
        accepted = f"a list of values, or {{ from = 1, count = 10 }} with up to {MAX_POINTS}"
        raise ConfigError(source, field, values, accepted) from None
    if isinstance(chosen, IntegerRange):
        return tuple(range(chosen.first, chosen.first + chosen.count))
    if not chosen:
        raise ConfigError(source, field, [], "at least one value")
    return tuple(chosen)


def _check_name(parameter: str, place: str, source: str) -> None:
    section, _, field = parameter.partition(".")
    if section not in SECTIONS or not field:
        accepted = (
            "a parameter of the scenario with its table, such as links.loss_ratio (tables: "
            f"{', '.join(SECTIONS)})"
        )
        names = [name for name in field_names(Scenario) if name.startswith(SECTIONS)]
        if meant := suggestion(parameter, names):
            accepted += f".{meant}"
        raise ConfigError(source, place, parameter, accepted)
