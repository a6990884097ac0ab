"""Does a scenario make sense? What types cannot check: names must exist, and texts must parse.

Every check yields a fault as a field, its value, and what is accepted; the first one is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from tidings.core.errors import A_FEW, SyntaxFault, one_of
from tidings.core.predicate import parse
from tidings.core.topic import check_filter, check_topic
from tidings.core.topology import Topology
from tidings.sim.scenario import Scenario

Faulty = tuple[str, object, str]
MOST_BREAKS = 1_000_000  # of links in one run: all are drawn before it begins
MOST_NAPS = 100_000  # of one broker


def scenario_faults(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    """All that is wrong with a scenario."""
    if not overlay.is_connected():
        yield "topology", "in pieces", "a connected overlay"
    yield from _links(scenario)
    yield from _workload(scenario, overlay)
    yield from _content(scenario, overlay)
    yield from _schedule(scenario, overlay)
    yield from _slots(scenario, overlay)
    yield from _dynamics(scenario, overlay)
    yield from _texts(scenario)


def _links(scenario: Scenario) -> Iterator[Faulty]:
    links = scenario.links
    if links.model and links.replay:
        yield "links.replay", links.replay, "empty, as links.model says how links behave"
    pace, deviation = links.ms_per_kbyte, links.ms_per_kbyte_deviation
    if pace is None:
        if deviation > 0:
            yield "links.ms_per_kbyte_deviation", deviation, "0, as links.ms_per_kbyte is not set"
        return
    if not pace[0] <= pace[1] < inf:
        yield "links.ms_per_kbyte", pace, "[low, high] with low <= high"
    if deviation == inf:
        yield "links.ms_per_kbyte_deviation", deviation, "a number of milliseconds from 0"
    if links.rate_kbit_per_s < inf:
        accepted = "inf, as links.ms_per_kbyte says how fast a link is"
        yield "links.rate_kbit_per_s", links.rate_kbit_per_s, accepted


def _content(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    content, brokers = scenario.workload.content, len(overlay.brokers)
    if scenario.workload.kind == "topics":
        return
    where = "workload.content"
    for field in ("publishers", "subscriber_brokers"):
        if getattr(content, field) > brokers:
            yield f"{where}.{field}", getattr(content, field), f"at most all {brokers} brokers"
    for field in ("attribute_range", "publisher_deadline_s"):
        low, high = getattr(content, field)
        if not -inf < low <= high < inf:
            yield f"{where}.{field}", (low, high), "[low, high] with low <= high"
    if not 0 < len(content.subscriber_deadline_s) == len(content.subscriber_price):
        accepted = "one price for each of subscriber_deadline_s, and at least one"
        yield f"{where}.subscriber_price", content.subscriber_price, accepted
    if scenario.workload.publisher:
        accepted = "topics, where publishers and subscribers are listed"
        yield "workload.kind", scenario.workload.kind, accepted


def _workload(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    workload = scenario.workload
    low, high = workload.subscribe_probability
    if low > high:
        yield "workload.subscribe_probability", (low, high), "[low, high] with low <= high"
    if bool(workload.publisher) != bool(workload.subscriber):
        yield "workload", "half a list", "publisher and subscriber, both or neither"
    drawn = workload.kind == "topics" and not workload.publisher
    if drawn and workload.topics > len(overlay.brokers):
        accepted = f"at most one topic per broker ({len(overlay.brokers)})"
        yield "workload.topics", workload.topics, accepted
    for i, publisher in enumerate(workload.publisher):
        yield from _place(f"workload.publisher[{i}].broker", publisher.broker, overlay)
    taken: set[str] = set()
    for i, wish in enumerate(workload.subscriber):
        yield from _place(f"workload.subscriber[{i}].broker", wish.broker, overlay)
        if wish.id(i + 1) in taken:
            accepted = "a name that no other subscriber to this topic at this broker has"
            yield f"workload.subscriber[{i}].name", wish.name, accepted
        taken.add(wish.id(i + 1))


def _schedule(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    for i, fault in enumerate(scenario.faults.schedule):
        where = f"faults.schedule[{i}]"
        if fault.link and fault.link[1] not in overlay.delays.get(fault.link[0], {}):
            yield f"{where}.link", fault.link, "the two ends of a link of the overlay"
        if fault.link and fault.broker:
            yield f"{where}.broker", fault.broker, "a link or a broker, not both"
        if not fault.link:
            yield from _place(f"{where}.broker", fault.broker, overlay)
        if fault.to_s <= fault.from_s:
            yield f"{where}.to_s", fault.to_s, f"an instant after from_s ({fault.from_s:g})"


def _slots(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    delay_ms = scenario.faults.slots.delay_ms
    if delay_ms is not None and any(link.delay_steps for link in overlay.links):
        accepted = "absent, as this topology's delays change by themselves"
        yield "faults.slots.delay_ms", delay_ms, accepted


def _dynamics(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    dynamics, brokers = scenario.dynamics, len(overlay.brokers)
    low, high = dynamics.delay_ms
    if not low <= high < inf:
        yield "dynamics.delay_ms", dynamics.delay_ms, "[low, high] with low <= high"
    if dynamics.degree >= brokers:
        yield "dynamics.degree", dynamics.degree, f"fewer than the {brokers} brokers"
    if scenario.links_itself and dynamics.break_every_s < inf:
        accepted = f"inf, as with broker.linking = {scenario.broker.linking!r} brokers choose links"
        yield "dynamics.break_every_s", dynamics.break_every_s, accepted
    if scenario.run.seconds / dynamics.break_every_s > MOST_BREAKS:
        accepted = f"so seldom that a run has at most {MOST_BREAKS:,} of them"
        yield "dynamics.break_every_s", dynamics.break_every_s, accepted
    if scenario.run.seconds / (dynamics.awake_s + dynamics.asleep_s) > MOST_NAPS:
        accepted = f"so long that a broker falls asleep at most {MOST_NAPS:,} times in a run"
        yield "dynamics.awake_s", dynamics.awake_s, accepted
    for i, absence in enumerate(dynamics.absence):
        where = f"dynamics.absence[{i}]"
        yield from _place(f"{where}.broker", absence.broker, overlay)
        if absence.to_s <= absence.from_s:
            yield f"{where}.to_s", absence.to_s, f"an instant after from_s ({absence.from_s:g})"
        if absence.leaves and not absence.from_s:
            yield f"{where}.leaves", True, "false, as a broker that joins was not there before"


def _place(field: str, broker: str, overlay: Topology) -> Iterator[Faulty]:
    if broker not in overlay.brokers:
        yield field, broker, one_of(overlay.brokers, broker, most=A_FEW)


def _texts(scenario: Scenario) -> Iterator[Faulty]:
    """Topics, filters and predicates."""
    for i, publisher in enumerate(scenario.workload.publisher):
        yield from _text(f"workload.publisher[{i}].topic", publisher.topic, check_topic)
    for i, wish in enumerate(scenario.workload.subscriber):
        yield from _text(f"workload.subscriber[{i}].topic", wish.topic, check_filter)
        if wish.where:
            yield from _text(f"workload.subscriber[{i}].where", wish.where, parse)
    for i, policy in enumerate(scenario.policy):
        yield from _text(f"policy[{i}].topic", policy.topic, check_filter)


def _text(field: str, text: str, check: Callable[[str], object]) -> Iterator[Faulty]:
    try:
        check(text)
    except SyntaxFault as fault:
        yield field, text, f"a {fault.what} (at character {fault.position + 1}: {fault.problem})"
