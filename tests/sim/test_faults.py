"""What breaks, and when."""

from itertools import pairwise

import pytest
from support.scenarios import a_scenario

from tidings.scenarios.set_up import set_up
from tidings.sim.faults import Outages
from tidings.sim.scenario import Scenario


def drawn(scenario: Scenario) -> Outages:
    return set_up(scenario).outages


def test_by_default_nothing_breaks_and_everything_is_listed() -> None:
    found = drawn(a_scenario())
    assert set(found.brokers) == {"b1", "b2", "b3", "b4"}
    assert len(found.links) == 6
    assert not any(found.brokers.values())
    assert not any(found.links.values())


def test_listed_outages_are_taken_over_sorted_and_merged() -> None:
    schedule = [
        {"from_s": 5, "to_s": 7, "link": ["b2", "b1"]},  # in any order of its ends
        {"from_s": 1, "to_s": 2, "link": ["b1", "b2"]},
        {"from_s": 6, "to_s": 9, "link": ["b1", "b2"]},
        {"from_s": 9, "to_s": 10, "link": ["b1", "b2"]},
        {"from_s": 3, "to_s": 4, "broker": "b3"},
    ]
    found = drawn(a_scenario(faults={"schedule": schedule}))
    assert found.links["b1", "b2"] == ((1.0, 2.0), (5.0, 10.0))
    assert found.brokers["b3"] == ((3.0, 4.0),)


def test_drawn_outages_come_as_often_and_last_as_long_as_told() -> None:
    scenario = a_scenario(
        {
            "run.seconds": 1_000_000.0,
            "faults.broker_failures_per_hour": 36.0,  # one in 100 s of working
            "faults.broker_outage_s": 20.0,
        }
    )
    spans = [span for found in drawn(scenario).brokers.values() for span in found]
    assert len(spans) == pytest.approx(4 * 1_000_000 / 120, rel=0.03)
    mean_s = sum(until - at for at, until in spans) / len(spans)
    assert mean_s == pytest.approx(20.0, rel=0.03)


def test_outages_of_one_subject_are_sorted_and_disjoint() -> None:
    changes = {"run.seconds": 5000.0, "faults.link_failures_per_hour": 300.0}
    for found in drawn(a_scenario(changes)).links.values():
        assert found
        assert all(at < until for at, until in found)
        assert all(earlier[1] < later[0] for earlier, later in pairwise(found))


def test_outages_belong_to_their_subject_and_the_seed() -> None:
    changes = {"run.seconds": 5000.0, "faults.link_failures_per_hour": 60.0}
    base = drawn(a_scenario(changes))
    assert drawn(a_scenario({**changes, "broker.strategy": "flooding"})) == base
    larger = drawn(a_scenario({**changes, "topology.brokers": 6}))
    assert larger.links["b1", "b2"] == base.links["b1", "b2"]
    assert len(set(base.links.values())) == 6
    assert drawn(a_scenario({**changes, "run.seed": 2})) != base


def test_every_link_gets_the_conditions_of_the_scenario_with_its_own_delay_and_outages() -> None:
    scenario = a_scenario(
        {"links.loss_ratio": 0.1, "links.rate_kbit_per_s": 80.0, "links.failure_probability": 0.2},
        faults={"schedule": [{"from_s": 1, "to_s": 2, "link": ["b1", "b2"]}]},
    )
    overlay = set_up(scenario).overlay
    found = set_up(scenario).conditions
    assert list(found) == [(link.a, link.b) for link in overlay.links]
    here = found["b1", "b2"]
    assert here.delay_s == overlay.delay_s("b1", "b2")
    assert here.rate_bytes_per_s == 10_000.0
    assert (here.loss_ratio, here.failure_probability) == (0.1, 0.2)
    assert here.outages == ((1.0, 2.0),)
    assert found["b1", "b3"].outages == ()


def test_pinned_brokers_are_told_the_long_run_truth_and_measuring_ones_nothing() -> None:
    changes = {
        "links.loss_ratio": 0.1,
        "links.failure_probability": 0.2,
        "links.processing_ms": 5.0,
    }
    scenario = a_scenario(changes)
    overlay = set_up(scenario).overlay
    told = set_up(scenario).estimates("b1")["b2"]
    assert told is not None
    assert told.delay_s == pytest.approx(overlay.delay_s("b1", "b2") + 0.005)
    assert told.delivery_ratio == pytest.approx(0.72)
    measuring = a_scenario({**changes, "broker.estimates": "measured"})
    assert set_up(measuring).estimates("b1") == {"b2": None, "b3": None, "b4": None}
