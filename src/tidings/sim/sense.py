"""Does a scenario make sense? What types cannot say: names must exist, and texts must parse.

Every check yields a fault as a field, its value, and what is accepted; the first is the one told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tidings.core.errors import SyntaxFault
from tidings.core.predicate import parse
from tidings.core.topic import check_filter, check_topic
from tidings.core.topology import Topology

if TYPE_CHECKING:
    from tidings.sim.scenario import Scenario

Faulty = tuple[str, object, str]

# Fields of the values behind a file that nobody sets in it.
NOT_IN_A_FILE = {
    "source": "no such field; it is the name of the file",
    "folder": "no such field; it is where the file is",
    "broker.policies": "no such field; one table [[policy]] for each",
}


def faults(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    """All that is wrong with a scenario."""
    if not overlay.is_connected():
        yield "topology", "in pieces", "a connected overlay"
    yield from _workload(scenario, overlay)
    yield from _schedule(scenario, overlay)
    yield from _texts(scenario)


def _workload(scenario: Scenario, overlay: Topology) -> Iterator[Faulty]:
    workload = scenario.workload
    low, high = workload.subscribe_probability
    if low > high:
        yield "workload.subscribe_probability", (low, high), "[low, high] with low <= high"
    if bool(workload.publisher) != bool(workload.subscriber):
        yield "workload", "half a list", "publisher and subscriber, both or neither"
    if not workload.publisher and workload.topics > len(overlay.brokers):
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


def _place(field: str, broker: str, overlay: Topology) -> Iterator[Faulty]:
    if broker not in overlay.brokers:
        yield field, broker, f"one of {', '.join(overlay.brokers)}"


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
