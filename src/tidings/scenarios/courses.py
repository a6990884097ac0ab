"""Where do the courses of a scenario's links come from? From a model, or the past."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pyarrow as pa

from tidings.core.errors import ConfigError, FileError, first_line
from tidings.core.topology import Topology
from tidings.files.link_model import read_link_model
from tidings.scenarios.past_rows import read_past
from tidings.sim.courses.explicit import with_explicit
from tidings.sim.courses.link_course import AS_WRITTEN, Ends, LinkCourses
from tidings.sim.courses.past import RoundTrips, past_courses
from tidings.sim.scenario import Scenario


def courses_of(scenario: Scenario, overlay: Topology) -> LinkCourses:
    """The courses of the overlay's links that are known; the same for equal scenarios."""
    links, ends = scenario.links, tuple((link.a, link.b) for link in overlay.links)
    if not (links.model or links.replay):
        return AS_WRITTEN
    courses = _learned(scenario, overlay, ends) if links.model else _replayed(scenario, ends)
    return with_explicit(courses, scenario.explicit)


def _learned(scenario: Scenario, overlay: Topology, ends: tuple[Ends, ...]) -> LinkCourses:
    # Here, because it brings SciPy, which takes longer to import than all the rest.
    from tidings.sim.courses.learned import learned_courses

    run, links = scenario.run, scenario.links
    place = (scenario.source or run.name, "links.model", links.model)
    model = read_link_model(Path(scenario.folder) / links.model, *place[:2])
    length_s = run.start_s + run.seconds + run.drain_s
    return learned_courses(model, overlay.brokers, ends, scenario.draws(), length_s, place)


def _replayed(scenario: Scenario, ends: tuple[Ends, ...]) -> LinkCourses:
    links, folder = scenario.links, Path(scenario.folder) / scenario.links.replay
    limited = links.ms_per_kbyte is not None or links.rate_kbit_per_s < inf
    messages_count = not limited and links.ack == "travels"
    round_trips = RoundTrips(links.processing_ms / 1000, messages_count)
    try:
        past = read_past(folder, scenario.broker.probe_timeout_s)
        return past_courses(past, ends, round_trips)
    except FileError as error:
        source = f"{scenario.source or scenario.run.name}: links.replay"
        raise FileError(error.path, error.problem, source) from None
    except (ConfigError, ValueError, OSError, pa.ArrowException) as error:
        accepted = f'traces of a run with [broker] trace = "hops" (here: {_problem(error)})'
        source = scenario.source or scenario.run.name
        raise ConfigError(source, "links.replay", links.replay, accepted) from None


def _problem(error: Exception) -> str:
    if isinstance(error, ConfigError):
        return f"{error.source}: {error.field} is {error.value}"
    return first_line(error)
