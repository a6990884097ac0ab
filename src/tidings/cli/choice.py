"""Which scenario exactly? A file, and what the command line says instead of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tidings.core.document import culprit
from tidings.core.errors import ConfigError, FileError
from tidings.scenarios.find import find_scenario
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.setup import Setup

ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A file, or the name of one that is packaged")
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any parameter, as links.loss_ratio=0.01; repeatable"
    ),
]

# The parameters that have an option of their own.
OPTIONS = {
    "--strategy": "broker.strategy",
    "--seed": "run.seed",
    "--seconds": "run.seconds",
    "--weather": "links.model",
    "--replay": "links.replay",
}


def choose(
    scenario: str,
    settings: Sequence[str] | None,
    strategy: str = "",
    seed: int | None = None,
    seconds: float | None = None,
    weather: Path | None = None,
    replay: Path | None = None,
    check: Callable[[Scenario], None] = lambda scenario: None,
) -> Setup:
    """The scenario of this file or name, with some parameters replaced, set up. `check` may refuse
    it too. A fault that an option brought in is said to be the option's."""
    changes = dict(_parsed(setting) for setting in settings or ())
    named = {"--strategy": strategy or None, "--seed": seed, "--seconds": seconds}
    # Files named on the command line are relative to where it is typed, not to the scenario.
    for option, path in (("--weather", weather), ("--replay", replay)):
        if path is not None and not path.exists():
            raise FileError(str(path), os.strerror(errno.ENOENT), option)
        named[option] = None if path is None else str(path.absolute())
    changes |= {OPTIONS[name]: value for name, value in named.items() if value is not None}
    try:
        chosen = load(find_scenario(scenario), changes)
        check(chosen)
        return set_up(chosen)
    except ConfigError as error:
        name = culprit(error.field, changes)
        if name is None:
            raise
        options = [
            option for option in named if OPTIONS[option] == name and named[option] is not None
        ]
        raise ConfigError(
            next(iter(options), "--set"), name, changes[name], error.accepted
        ) from None


def _parsed(setting: str) -> tuple[str, Any]:
    """`name=value`, where the value is read as TOML; a bare word is a string."""
    name, equals, text = setting.partition("=")
    if not equals:
        raise ConfigError("--set", "parameter", setting, "name=value")
    try:
        return name, msgspec.toml.decode(f"value = {text}")["value"]
    except msgspec.DecodeError:
        return name, text
