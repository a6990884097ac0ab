"""Where does a scenario's weather come from? From its own parameters, a model, or the past."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from tidings.core.errors import ConfigError
from tidings.core.linkmodel import LinkModel, read_link_model
from tidings.core.rng import Draws
from tidings.core.topology import Topology
from tidings.sim.course import AS_WRITTEN, Courses, Ends
from tidings.sim.learned import learned_courses
from tidings.sim.past import Reading, past_courses
from tidings.sim.past_rows import PastRows, read_past

if TYPE_CHECKING:
    from tidings.sim.scenario import Scenario

T = TypeVar("T")


def courses(scenario: Scenario, overlay: Topology) -> Courses:
    """The courses of the overlay's links that are known; the same for equal scenarios."""
    links, ends = scenario.links, tuple((link.a, link.b) for link in overlay.links)
    if links.model:
        place = (scenario.source or scenario.run.name, "links.model", links.model)
        model = read_link_model(Path(scenario.folder) / links.model, *place[:2])
        run = scenario.run
        length_s = run.start_s + run.seconds + run.drain_s
        return _learned(_Same(model), overlay.brokers, ends, run.seed, length_s, place)
    if links.replay:
        return _replayed(scenario, ends)
    return AS_WRITTEN


def _replayed(scenario: Scenario, ends: tuple[Ends, ...]) -> Courses:
    links, folder = scenario.links, Path(scenario.folder) / scenario.links.replay
    limited = links.ms_per_kbyte is not None or links.rate_kbit_per_s < inf
    reading = Reading(links.processing_ms / 1000, not limited and links.ack == "travels")
    try:
        past = read_past(folder, scenario.broker.probe_timeout_s)
        return _past(_Same(past), ends, reading)
    except (ValueError, OSError, pa.ArrowException) as error:
        problem = str(error).strip().partition("\n")[0]
        accepted = f"a folder of traces of level hops (here: {problem})"
        source = scenario.source or scenario.run.name
        raise ConfigError(source, "links.replay", links.replay, accepted) from None


class _Same(Generic[T]):
    """A large value as a key: what was read once is the same, and need not be compared."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=4)
def _learned(
    model: _Same[LinkModel],
    brokers: tuple[str, ...],
    ends: tuple[Ends, ...],
    seed: int,
    length_s: float,
    place: tuple[str, str, str],
) -> Courses:
    """Drawn once for all who ask."""
    return learned_courses(model.value, brokers, ends, Draws(seed), length_s, place)


@lru_cache(maxsize=2)
def _past(past: _Same[PastRows], ends: tuple[Ends, ...], reading: Reading) -> Courses:
    """The same for the past."""
    return past_courses(past.value, ends, reading)
