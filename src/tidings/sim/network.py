"""What every link of a scenario is like: the physics that either world applies."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from tidings.core.links.conditions import Conditions
from tidings.core.links.estimates import LinkEstimate
from tidings.core.topology import Link, Topology
from tidings.sim.courses.link_course import LinkCourses
from tidings.sim.faults import Outages
from tidings.sim.scenario import Scenario


class _LongRun(NamedTuple):
    """What a link is like in the long run, in both directions."""

    loss_ratio: float
    failure_probability: float  # per epoch
    works: float  # the part of the time in which it carries anything
    rate_kbit_per_s: float
    drawn_s_per_byte: float = 0.0  # mean, where it is drawn for each message; 0: it is not
    deviation_s_per_byte: float = 0.0

    @property
    def arrives(self) -> float:
        """The part of what is sent at any time."""
        return self.works * (1.0 - self.loss_ratio)

    @property
    def s_per_byte(self) -> float:
        return 8 / (self.rate_kbit_per_s * 1000) + self.drawn_s_per_byte


def conditions(
    scenario: Scenario, overlay: Topology, courses: LinkCourses, outages: Outages
) -> dict[tuple[str, str], Conditions]:
    """The conditions of each link, by its two ends in the overlay's order."""
    return {(link.a, link.b): condition(scenario, courses, outages, link) for link in overlay.links}


def condition(scenario: Scenario, courses: LinkCourses, outages: Outages, link: Link) -> Conditions:
    """The conditions of one link."""
    truth = _long_run(scenario, courses, link.a, link.b)
    return Conditions(
        delay_s=link.start_delay_s,
        loss_ratio=truth.loss_ratio,
        rate_bytes_per_s=truth.rate_kbit_per_s * 1000 / 8,
        failure_probability=truth.failure_probability,
        failure_epoch_s=scenario.links.failure_epoch_s,
        outages=outages.of_link(link.a, link.b),
        delay_steps=_slowed(scenario, link, outages) or link.delay_steps,
        repeat_s=link.repeat_s,
        s_per_byte=truth.drawn_s_per_byte,
        deviation_s_per_byte=truth.deviation_s_per_byte,
    )


def estimate(
    scenario: Scenario, courses: LinkCourses, a: str, b: str, delay_s: float
) -> LinkEstimate | None:
    """What a broker is told of one link before it measures; None: nothing."""
    if scenario.broker.estimates == "measured" and not scenario.links.model:
        return None
    truth = _long_run(scenario, courses, a, b)
    return LinkEstimate(
        delay_s + scenario.links.processing_s,
        truth.arrives,
        truth.s_per_byte,
        truth.deviation_s_per_byte,
        truth.works,
    )


def estimates(
    scenario: Scenario, overlay: Topology, courses: LinkCourses, broker: str
) -> dict[str, LinkEstimate | None]:
    """What a broker is told of its links before it starts: the long-run truth (mean delay and
    processing, delivery over losses and failures, time per byte), or what was learned of it; if it
    is to measure and there is no model, nothing."""
    near = overlay.delays[broker].items()
    return {other: estimate(scenario, courses, broker, other, delay_s) for other, delay_s in near}


def _long_run(scenario: Scenario, courses: LinkCourses, a: str, b: str) -> _LongRun:
    """As the link's course knows it, and else as the scenario says."""
    links, course = scenario.links, courses.of(a, b)
    loss_ratio = links.loss_ratio if course.loss_ratio is None else course.loss_ratio
    failure_probability, works = links.failure_probability, 1.0 - links.failure_probability
    if course.availability is not None:  # then its failures are among its outages
        failure_probability, works = 0.0, course.availability
    always = (loss_ratio, failure_probability, works)
    if course.s_per_byte is not None:
        return _LongRun(*always, inf, course.s_per_byte, course.deviation_s_per_byte)
    if links.ms_per_kbyte is None:
        return _LongRun(*always, links.rate_kbit_per_s)
    drawn = scenario.draws().uniform(*links.ms_per_kbyte, "ms-per-kbyte", *sorted((a, b)))
    deviation = links.ms_per_kbyte_deviation / 1e6
    return _LongRun(*always, links.rate_kbit_per_s, drawn / 1e6, deviation)


def _slowed(scenario: Scenario, link: Link, outages: Outages) -> tuple[tuple[float, float], ...]:
    """The steps of a link whose delay is another in some slots."""
    slow_ms = scenario.faults.slots.delay_ms
    if slow_ms is None:
        return ()
    slots = outages.slow.get((link.a, link.b), ())
    return tuple(
        step for start, end in slots for step in ((start, slow_ms / 1000), (end, link.delay_s))
    )
