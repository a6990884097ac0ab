"""What every link of a scenario is like: the physics that either world applies."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from tidings.core.links.estimates import LinkEstimate
from tidings.core.links.weather import Conditions
from tidings.core.topology import Link, Topology
from tidings.sim.courses.link_course import LinkCourse, LinkCourses
from tidings.sim.faults import Outages
from tidings.sim.scenario import Scenario


def conditions(
    scenario: Scenario, overlay: Topology, courses: LinkCourses, outages: Outages
) -> dict[tuple[str, str], Conditions]:
    """The conditions of each link, by its two ends in the overlay's order."""
    found = {}
    for link in overlay.links:
        course = courses.of(link.a, link.b)
        pace = _pace(scenario, course, link.a, link.b)
        found[link.a, link.b] = Conditions(
            delay_s=link.start_delay_s,
            loss_ratio=_loss_ratio(scenario, course),
            rate_bytes_per_s=pace.rate_kbit_per_s * 1000 / 8,
            failure_probability=_failure_probability(scenario, course),
            failure_epoch_s=scenario.links.failure_epoch_s,
            outages=outages.links[link.a, link.b],
            delay_steps=_slowed(scenario, link, outages) or link.delay_steps,
            repeat_s=link.repeat_s,
            s_per_byte=pace.drawn,
            deviation_s_per_byte=pace.deviation,
        )
    return found


def _slowed(scenario: Scenario, link: Link, outages: Outages) -> tuple[tuple[float, float], ...]:
    """The steps of a link whose delay is another in some slots."""
    slow_ms = scenario.faults.slots.delay_ms
    if slow_ms is None:
        return ()
    slots = outages.slow[link.a, link.b]
    return tuple(
        step for start, end in slots for step in ((start, slow_ms / 1000), (end, link.delay_s))
    )


def estimates(
    scenario: Scenario, overlay: Topology, courses: LinkCourses, broker: str
) -> dict[str, LinkEstimate | None]:
    """What a broker is told of its links before it starts: the long-run truth (mean delay and
    processing, delivery over losses and failures, time per byte), or what was learned of it; if it
    is to measure and there is no model, nothing."""
    if scenario.broker.estimates == "measured" and not scenario.links.model:
        return dict.fromkeys(overlay.neighbours(broker))
    processing_s = scenario.links.processing_ms / 1000
    known: dict[str, LinkEstimate | None] = {}
    for neighbour, delay_s in overlay.delays[broker].items():
        course = courses.of(broker, neighbour)
        pace = _pace(scenario, course, broker, neighbour)
        works = 1.0 - _failure_probability(scenario, course)
        works *= 1.0 if course.availability is None else course.availability
        arrives = works * (1.0 - _loss_ratio(scenario, course))
        known[neighbour] = LinkEstimate(
            delay_s + processing_s, arrives, pace.s_per_byte, pace.deviation, works
        )
    return known


class _Pace(NamedTuple):
    """How fast a link is: at a fixed rate, or in seconds per byte that are drawn per message."""

    rate_kbit_per_s: float
    drawn: float = 0.0  # mean; 0: not drawn
    deviation: float = 0.0

    @property
    def s_per_byte(self) -> float:
        return 8 / (self.rate_kbit_per_s * 1000) + self.drawn


def _pace(scenario: Scenario, course: LinkCourse, a: str, b: str) -> _Pace:
    """How fast a link is, in both directions."""
    links = scenario.links
    if course.s_per_byte is not None:
        return _Pace(inf, course.s_per_byte, course.deviation_s_per_byte)
    if links.ms_per_kbyte is None:
        return _Pace(links.rate_kbit_per_s)
    drawn = scenario.draws().uniform(*links.ms_per_kbyte, "ms-per-kbyte", *sorted((a, b)))
    return _Pace(links.rate_kbit_per_s, drawn / 1e6, links.ms_per_kbyte_deviation / 1e6)


def _loss_ratio(scenario: Scenario, course: LinkCourse) -> float:
    return scenario.links.loss_ratio if course.loss_ratio is None else course.loss_ratio


def _failure_probability(scenario: Scenario, course: LinkCourse) -> float:
    """Per epoch; a course that knows when the link works has its failures among its outages."""
    return scenario.links.failure_probability if course.availability is None else 0.0
