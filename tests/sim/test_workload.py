"""Who says what, and who wants to hear it."""

from itertools import islice, pairwise
from typing import Any

import pytest
from support.scenarios import a_scenario

from tidings.core.graphs.paths import shortest_from
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.workload import Load, publication_times, publications


def load(scenario: Scenario) -> Load:
    return set_up(scenario).load


def times(scenario: Scenario, index: int = 0) -> list[float]:
    return list(publication_times(scenario, index, load(scenario).publishers[index]))


def test_each_topic_has_one_publisher_at_a_broker_of_its_own() -> None:
    publishers = load(a_scenario({"workload.topics": 4})).publishers
    assert len({publisher.broker for publisher in publishers}) == 4
    assert [publisher.topic for publisher in publishers] == [f"topic/{n}" for n in (1, 2, 3, 4)]


def test_with_certainty_every_other_broker_subscribes_once_per_topic() -> None:
    found = load(a_scenario())
    homes = {p.topic: p.broker for p in found.publishers}
    for topic, home in homes.items():
        subscribers = [s.broker for s in found.subscriptions if s.topic == topic]
        assert subscribers == [b for b in ("b1", "b2", "b3", "b4") if b != home]


def test_subscribers_are_drawn_with_a_probability_within_the_range() -> None:
    changes: dict[str, Any] = {"topology.brokers": 40, "workload.topics": 40}
    changes["workload.subscribe_probability"] = [0.3, 0.3]
    count = len(load(a_scenario(changes)).subscriptions)
    assert count / (40 * 39) == pytest.approx(0.3, abs=0.06)


def test_a_deadline_is_a_multiple_of_the_shortest_delay_from_the_publisher() -> None:
    scenario = a_scenario({"workload.deadline_factor": 2.5, "workload.late": "drop"})
    found, overlay = load(scenario), set_up(scenario).overlay
    homes = {p.topic: p.broker for p in found.publishers}
    for wish in found.subscriptions:
        shortest = shortest_from(overlay.delays, homes[wish.topic]).distance[wish.broker]
        assert wish.contract.deadline_s == pytest.approx(2.5 * shortest)
        assert wish.contract.late == "drop"


def test_the_load_is_the_same_for_every_strategy_and_another_for_another_seed() -> None:
    scenario = a_scenario({"topology.brokers": 12, "workload.subscribe_probability": [0.2, 0.6]})
    base = load(scenario)
    for change in ({"broker.strategy": "direct"}, {"links.loss_ratio": 0.5}):
        other = {"topology.brokers": 12, "workload.subscribe_probability": [0.2, 0.6], **change}
        assert load(a_scenario(other)) == base
    other = {"topology.brokers": 12, "workload.subscribe_probability": [0.2, 0.6], "run.seed": 2}
    assert load(a_scenario(other)) != base


def test_periodic_publishers_speak_at_equal_distances_from_a_phase_of_their_own() -> None:
    scenario = a_scenario({"run.seconds": 20.0})
    first, second = times(scenario, 0), times(scenario, 1)
    assert len(first) == pytest.approx(100, abs=1)
    assert all(b - a == pytest.approx(0.2) for a, b in pairwise(first))
    assert 1.0 <= first[0] < 1.2
    assert first[-1] < 21.0
    assert first[0] != second[0]


def test_poisson_publishers_speak_at_exponential_distances() -> None:
    scenario = a_scenario({"run.seconds": 800.0, "workload.arrivals": "poisson"})
    at = times(scenario)
    gaps = [b - a for a, b in pairwise(at)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(0.2, rel=0.08)
    assert sum(gap > 0.2 for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.03)
    assert all(1.0 <= moment < 801.0 for moment in at)


def test_a_listed_workload_is_taken_as_it_is_written() -> None:
    workload = {
        "publisher": [{"broker": "b1", "topic": "a", "deadline_ms": 500, "late": "drop"}],
        "subscriber": [
            {"broker": "b2", "topic": "a", "deadline_ms": 250, "price": 3.0},
            {"broker": "b3", "topic": "+", "name": "eve", "where": "x < 3"},
        ],
    }
    found = load(a_scenario(workload=workload))
    assert [p.contract.deadline_s for p in found.publishers] == [0.5]
    assert found.publishers[0].contract.late == "drop"
    assert [wish.id for wish in found.subscriptions] == ["b2/s1:a", "b3/eve:+"]
    assert found.subscriptions[0].contract.deadline_s == 0.25
    assert found.subscriptions[0].contract.price == 3.0
    assert found.subscriptions[1].where == "x < 3"


def test_what_a_listed_publisher_leaves_out_the_workload_says_for_all() -> None:
    publishers = [
        {"broker": "b1", "topic": "a"},
        {"broker": "b2", "topic": "b", "rate_per_s": 7.0, "payload_bytes": 0},
    ]
    workload: dict[str, Any] = {"rate_per_s": 3.0, "payload_bytes": 250, "durable": True}
    workload |= {"publisher": publishers, "subscriber": [{"broker": "b3", "topic": "#"}]}
    found = load(a_scenario(workload=workload)).publishers
    assert [(p.rate_per_s, p.payload_bytes) for p in found] == [(3.0, 250), (7.0, 0)]
    assert all(p.contract.durable for p in found)


def test_an_availability_is_taken_from_either_side_of_a_listed_workload() -> None:
    workload = {
        "publisher": [{"broker": "b1", "topic": "a", "availability": 0.99}],
        "subscriber": [{"broker": "b2", "topic": "a", "availability": 0.999}],
    }
    found = load(a_scenario(workload=workload))
    assert found.publishers[0].contract.availability == 0.99
    assert found.subscriptions[0].contract.availability == 0.999


@pytest.mark.parametrize("kind", ["topics", "content"])
def test_a_durable_workload_makes_every_drawn_message_durable(kind: str) -> None:
    content = {"workload.content.subscriber_brokers": 4, "workload.content.rate_per_minute": 300}
    scenario = a_scenario({"workload.kind": kind, "workload.durable": True, **content})
    said = islice(publications(scenario, 0, load(scenario).publishers[0]), 3)
    assert [publication.contract.durable for publication in said] == [True, True, True]
