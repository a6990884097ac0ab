"""From a scenario to what a run takes place on: its files are read, what makes no sense refused."""

from __future__ import annotations

from pathlib import Path

from tidings.core.errors import ConfigError
from tidings.scenarios.checks import scenario_faults
from tidings.scenarios.courses import courses_of
from tidings.scenarios.overlay import build
from tidings.sim.courses.link_course import with_course_delays
from tidings.sim.scenario import Scenario
from tidings.sim.setup import Setup


def set_up(scenario: Scenario) -> Setup:
    """The setup of a scenario; a `ConfigError` names the first thing that makes no sense."""
    parameters = dict(scenario.topology)
    kind = str(parameters.pop("kind", "full-mesh"))
    place, folder = f"{scenario.source}: topology", Path(scenario.folder)
    drawn = build(kind, parameters, scenario.draws(), place, folder)
    courses = courses_of(scenario, drawn)
    overlay = with_course_delays(drawn, courses.links)
    for fault in scenario_faults(scenario, overlay):
        raise ConfigError(scenario.source, *fault)
    return Setup(scenario, overlay, courses, scenario.settings())
