"""Who says what, and who wants to hear it: the load that a scenario puts on an overlay.

Drawn as in DCRD's section IV.A: one publisher per topic at a broker of its own; a subscriber at
each other broker with a probability that is drawn per topic; and a deadline that is a multiple of
the shortest delay from the publisher. Or by content, as in bounded delay (`content`). Or listed,
line by line, in the scenario.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.core.contract import Contract, Subscription, subscription_id
from tidings.core.graphs.paths import shortest_from
from tidings.core.rng import Draws
from tidings.core.topology import Topology
from tidings.core.values import Value
from tidings.sim import content
from tidings.sim.scenario import Publisher, Scenario, Speaker


class Load(Value, frozen=True):
    """All publishers and subscriptions of a run, in a fixed order."""

    publishers: tuple[Speaker, ...]
    subscriptions: tuple[Subscription, ...]


class Publication(Value, frozen=True):
    """What a publisher says, and when, in seconds since the run began."""

    at: float
    contract: Contract  # `BEST_EFFORT`: none is stated
    properties: content.Properties = ()


def draw_load(scenario: Scenario, overlay: Topology) -> Load:
    """What the scenario's workload comes to on this overlay."""
    workload = scenario.workload
    if workload.publisher:
        speakers = tuple(publisher.speaker(workload) for publisher in workload.publisher)
        return Load(speakers, _listed(scenario))
    if workload.kind == "content":
        wanted = content.subscriptions(scenario, overlay)
        return Load(content.publishers(scenario, overlay), wanted)
    draws = scenario.draws()
    homes = draws.chosen(overlay.brokers, workload.topics, "publishers")
    width = len(str(workload.topics))
    publishers = tuple(
        Publisher(broker=home, topic=f"topic/{number:0{width}}").speaker(workload)
        for number, home in enumerate(homes, start=1)
    )
    wishes = [s for p in publishers for s in _drawn(scenario, overlay, draws, p)]
    return Load(publishers, tuple(wishes))


def _listed(scenario: Scenario) -> tuple[Subscription, ...]:
    return tuple(
        Subscription(
            wish.id(number),
            wish.broker,
            wish.topic,
            wish.where,
            wish.contract(),
        )
        for number, wish in enumerate(scenario.workload.subscriber, start=1)
    )


def _drawn(
    scenario: Scenario, overlay: Topology, draws: Draws, publisher: Speaker
) -> Iterator[Subscription]:
    """The subscriptions to one publisher's topic."""
    workload, topic = scenario.workload, publisher.topic
    probability = draws.uniform(*workload.subscribe_probability, "popularity", topic)
    shortest = shortest_from(overlay.delays, publisher.broker)
    for broker in overlay.brokers:
        if broker == publisher.broker:
            continue
        if draws.uniform(0.0, 1.0, "subscriber", topic, broker) < probability:
            deadline_s = workload.deadline_factor * shortest.distance[broker]
            contract = Contract(deadline_s, late=workload.late)
            wish_id = subscription_id(broker, f"at-{broker}", topic)
            yield Subscription(wish_id, broker, topic, "", contract)


def publications(scenario: Scenario, index: int, publisher: Speaker) -> Iterator[Publication]:
    """All that one publisher says."""
    times = publication_times(scenario, index, publisher)
    if scenario.workload.kind == "topics":
        return (Publication(at, publisher.contract) for at in times)
    stated = content.statements(scenario, index)
    return (Publication(at, *each) for at, each in zip(times, stated, strict=False))


def publication_times(scenario: Scenario, index: int, publisher: Speaker) -> Iterator[float]:
    """When one publisher speaks, in seconds since the run began."""
    run, every_s = scenario.run, 1.0 / publisher.rate_per_s
    stream = scenario.draws().stream("arrivals", index)
    end_at = run.start_s + run.seconds
    if scenario.workload.arrivals == "periodic":
        drawn_s, number = float(stream.uniform(0.0, every_s)), 0
        first_at = run.start_s + (drawn_s if publisher.phase_s is None else publisher.phase_s)
        while (at := first_at + number * every_s) < end_at:
            yield at
            number += 1
        return
    at = run.start_s + float(stream.exponential(every_s))
    while at < end_at:
        yield at
        at += float(stream.exponential(every_s))
