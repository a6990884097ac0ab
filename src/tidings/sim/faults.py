"""What breaks, and when: the schedule of link and broker outages of one run.

Drawn outages are a Poisson process per link and per broker with exponential lengths, keyed by the
subject, so that every strategy meets the same ones; listed outages, and those of a link's course,
are added to them. Slots are drawn per link and slot: for all of it the link is down, or slow.
A broker that departs from a moving overlay is down too, and takes its links with it (`sim.moves`).
One that sleeps keeps all it has, but its links are silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from msgspec import Struct

from tidings.core.links.intervals import Interval, disjoint
from tidings.core.rng import Draws
from tidings.core.topology import Topology
from tidings.sim.courses.link_course import LinkCourses
from tidings.sim.scenario import Scenario


class Outages(Struct, frozen=True):
    """When each link and each broker is down: sorted, disjoint, in seconds since the run began."""

    links: dict[tuple[str, str], tuple[Interval, ...]]
    brokers: dict[str, tuple[Interval, ...]]  # for whatever reason
    slow: dict[tuple[str, str], tuple[Interval, ...]]  # when each link has another delay
    # When brokers have departed, and take no place in the overlay.
    absences: dict[str, tuple[Interval, ...]] = {}
    leaving: dict[str, tuple[float, ...]] = {}  # when they do so in good order: they do not crash
    asleep: dict[str, tuple[Interval, ...]] = {}

    def of_link(self, a: str, b: str) -> tuple[Interval, ...]:
        """When a link carries nothing: it has failed, or one of its ends is asleep."""
        failed, ends = self.links.get((a, b), ()), (self.asleep.get(a, ()), self.asleep.get(b, ()))
        return disjoint((*failed, *ends[0], *ends[1])) if any(ends) else failed


def draw_outages(scenario: Scenario, overlay: Topology, courses: LinkCourses) -> Outages:
    """All outages of a run."""
    faults, draws = scenario.faults, scenario.draws()
    end_at = scenario.run.start_s + scenario.run.seconds
    links: dict[tuple[str, str], list[Interval]] = {}
    brokers: dict[str, list[Interval]] = {}
    for link in overlay.links:
        pace = (faults.link_failures_per_hour, faults.link_outage_s)
        links[link.a, link.b] = list(_drawn(draws, pace, end_at, "link", link.a, link.b))
        links[link.a, link.b] += courses.of(link.a, link.b).outages
    for broker in overlay.brokers:
        pace = (faults.broker_failures_per_hour, faults.broker_outage_s)
        brokers[broker] = list(_drawn(draws, pace, end_at, "broker", broker))
    for fault in faults.schedule:
        if fault.link:
            a, b = sorted(fault.link, key=overlay.brokers.index)
            links[a, b].append((fault.from_s, fault.to_s))
        else:
            brokers[fault.broker].append((fault.from_s, fault.to_s))
    absences, leaving = _departures(scenario, overlay)
    for broker, intervals in absences.items():
        brokers[broker] += intervals
    bad = {ends: list(_bad_slots(scenario, *ends)) for ends in links}
    fails = faults.slots.delay_ms is None
    return Outages(
        {ends: disjoint(found + (bad[ends] if fails else [])) for ends, found in links.items()},
        {broker: disjoint(found) for broker, found in brokers.items()},
        {ends: () if fails else disjoint(slots) for ends, slots in bad.items()},
        absences,
        leaving,
        {broker: tuple(_naps(scenario, broker)) for broker in overlay.brokers},
    )


def _naps(scenario: Scenario, broker: str) -> Iterator[Interval]:
    """When a broker sleeps: in turns of the same length, which each begins at its own time
    (semi-probabilistic routing, section 4.2)."""
    dynamics, run = scenario.dynamics, scenario.run
    if dynamics.awake_s == inf or not dynamics.asleep_s:
        return
    turn_s = dynamics.awake_s + dynamics.asleep_s
    at = run.start_s + scenario.draws().uniform(0.0, turn_s, "asleep", broker)
    while at < run.start_s + run.seconds:
        yield at, at + dynamics.asleep_s
        at += turn_s


def _departures(
    scenario: Scenario, overlay: Topology
) -> tuple[dict[str, tuple[Interval, ...]], dict[str, tuple[float, ...]]]:
    """When brokers are gone, and when they leave in good order."""
    dynamics, draws = scenario.dynamics, scenario.draws()
    end_at = scenario.run.start_s + scenario.run.seconds
    gone: dict[str, list[Interval]] = {}
    leaving: dict[str, list[float]] = {}
    for broker in overlay.brokers:
        pace = (dynamics.departures_per_hour, dynamics.absence_s)
        for number, interval in enumerate(_drawn(draws, pace, end_at, "departure", broker)):
            gone.setdefault(broker, []).append(interval)
            if draws.uniform(0.0, 1.0, "crashes", broker, number) >= dynamics.crash_share:
                leaving.setdefault(broker, []).append(interval[0])
    if dynamics.join_every_s:
        for place, broker in enumerate(overlay.brokers[1:], start=1):
            gone.setdefault(broker, []).append((0.0, place * dynamics.join_every_s))
    for absence in dynamics.absence:
        gone.setdefault(absence.broker, []).append((absence.from_s, absence.to_s))
        if absence.leaves:
            leaving.setdefault(absence.broker, []).append(absence.from_s)
    return (
        {broker: disjoint(intervals) for broker, intervals in gone.items()},
        {broker: tuple(sorted(instants)) for broker, instants in leaving.items()},
    )


def _bad_slots(scenario: Scenario, a: str, b: str) -> Iterator[Interval]:
    slots, draws = scenario.faults.slots, scenario.draws()
    if slots.probability <= 0:
        return
    stream = draws.stream("slots", *sorted((a, b)))
    at = scenario.run.start_s + slots.clean_s
    for drawn in stream.random(slots.count):
        if drawn < slots.probability:
            yield at, at + slots.slot_s
        at += slots.slot_s


def _drawn(
    draws: Draws, pace: tuple[float, float], end_at: float, *subject: str
) -> Iterator[Interval]:
    per_hour, mean_s = pace
    if per_hour <= 0:
        return
    stream = draws.stream("outages", *subject)
    at = float(stream.exponential(3600 / per_hour))
    while at < end_at:
        until = at + float(stream.exponential(mean_s))
        yield at, until
        at = until + float(stream.exponential(3600 / per_hour))
