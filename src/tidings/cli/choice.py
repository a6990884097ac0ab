"""Which scenario exactly? A file, and what the command line says instead of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tidings.core.errors import ConfigError
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.setup import Setup

Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any parameter, as links.loss_ratio=0.01; repeatable"),
]


def choose(
    scenario: Path,
    settings: Sequence[str] | None,
    strategy: str = "",
    seed: int | None = None,
    seconds: float | None = None,
    weather: Path | None = None,
    replay: Path | None = None,
) -> Setup:
    """The scenario in a file with some parameters replaced, set up."""
    changes = dict(_parsed(setting) for setting in settings or ())
    named = {"broker.strategy": strategy or None, "run.seed": seed, "run.seconds": seconds}
    # Files named on the command line are relative to where it is typed, not to the scenario.
    for field, path in (("links.model", weather), ("links.replay", replay)):
        named[field] = None if path is None else str(path.absolute())
    changes |= {name: value for name, value in named.items() if value is not None}
    return set_up(load(scenario, changes))


def _parsed(setting: str) -> tuple[str, Any]:
    """`name=value`, where the value is read as TOML; a bare word is a string."""
    name, equals, text = setting.partition("=")
    if not equals:
        raise ConfigError("--set", "parameter", setting, "name=value")
    try:
        return name, msgspec.toml.decode(f"value = {text}")["value"]
    except msgspec.DecodeError:
        return name, text
