"""Durable messages outlive brokers and partitions in virtual time, as they do on real disks."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.scenarios import a_scenario, outcome, served, wanted

from tidings.core.trace import Reason
from tidings.sim.scenario import Scenario

LINE = {"kind": "listed", "links_ms": [["b1", "b2", 20.0], ["b2", "b3", 20.0]]}
KEPT = [{"topic": "#", "durable": True}]


def line(schedule: list[dict[str, Any]], durable: bool, **changes: Any) -> Scenario:
    """A publisher at b1, a subscriber at b3, and b2 between them."""
    return a_scenario(
        {"broker.retry_every_s": 0.2, "run.drain_s": 10.0, **changes},
        topology=LINE,
        workload={
            "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 100.0}],
            "subscriber": [{"broker": "b3", "topic": "t", "name": "s"}],
        },
        faults={"schedule": schedule},
        policy=KEPT if durable else [],
    )


FAILURES = [
    [{"broker": "b2", "from_s": 2.0, "to_s": 2.5}],  # with what it has acknowledged
    [{"broker": "b1", "from_s": 2.0, "to_s": 2.5}],  # with what was published there
    [{"broker": "b3", "from_s": 2.0, "to_s": 2.5}],  # to which it is owed
    [
        {"link": ["b2", "b3"], "from_s": 2.0, "to_s": 4.0},  # so b2 holds all that comes
        {"broker": "b2", "from_s": 3.0, "to_s": 5.0},
        {"broker": "b3", "from_s": 3.5, "to_s": 4.5},
    ],
]


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd"])
@pytest.mark.parametrize("schedule", FAILURES)
def test_broker_failures_lose_no_durable_message(
    schedule: list[dict[str, Any]], strategy: str
) -> None:
    changes = {"broker.strategy": strategy}
    _, tables = outcome(line(schedule, durable=True, **changes))
    assert served(tables) >= wanted(tables)
    assert "dropped" not in tables


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd"])
@pytest.mark.parametrize(
    "schedule",
    [
        [{"broker": "b1", "from_s": 2.0, "to_s": 2.5}],
        [  # it comes back alone, and its neighbour knows no more than it does
            {"broker": "b1", "from_s": 2.0, "to_s": 2.5},
            {"broker": "b2", "from_s": 2.1, "to_s": 3.0},
        ],
        [  # and dies again before anybody told it who wants what it has taken
            {"broker": "b1", "from_s": 2.0, "to_s": 2.5},
            {"broker": "b2", "from_s": 2.1, "to_s": 3.5},
            {"broker": "b1", "from_s": 3.0, "to_s": 3.2},
        ],
    ],
)
def test_what_is_published_where_nobody_s_wishes_are_known_yet_reaches_all_the_same(
    schedule: list[dict[str, Any]], strategy: str
) -> None:
    _, tables = outcome(line(schedule, durable=True, **{"broker.strategy": strategy}))
    heard_at = schedule[0]["to_s"] + 3 * 0.02  # at the earliest: a handshake, and the news itself
    unheard = [r for r in tables["published"] if schedule[0]["to_s"] <= r["recorded_at"] < heard_at]
    assert unheard, "published before b1 can have heard again of the subscription at b3"
    published = {row["message"] for row in tables["published"]}
    assert {message for message, _ in served(tables)} == published


@pytest.mark.parametrize("schedule", [FAILURES[0], FAILURES[3]])
def test_what_is_not_durable_is_counted_as_lost_with_the_broker(
    schedule: list[dict[str, Any]],
) -> None:
    _, tables = outcome(line(schedule, durable=False, **{"broker.exhausted": "drop"}))
    missed = wanted(tables) - served(tables)
    reasons = Counter(row["reason"] for row in tables["dropped"])
    assert reasons[Reason.BROKER_FAILED] > 0
    assert {message for message, _ in missed} <= {row["message"] for row in tables["dropped"]}
    assert missed


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd"])
@pytest.mark.parametrize("durable", [True, False])
def test_a_partition_delays_what_is_durable_and_costs_the_rest(
    durable: bool, strategy: str
) -> None:
    cut = [{"link": ["b2", "b3"], "from_s": 2.0, "to_s": 4.0}]
    changes = {"broker.strategy": strategy, "broker.exhausted": "drop"}
    _, tables = outcome(line(cut, durable, **changes))
    if durable:
        assert served(tables) == wanted(tables)
        assert max(row["age_s"] for row in tables["delivered"]) > 1.9
    else:
        missed = {message for message, _ in wanted(tables) - served(tables)}
        assert len(missed) == pytest.approx(200, abs=10)
        assert missed <= {row["message"] for row in tables["dropped"]}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries(
        {
            "run.seed": st.integers(0, 10**6),
            "topology": st.sampled_from(
                [
                    LINE,
                    {"kind": "full-mesh", "brokers": 4},
                    {"kind": "random-degree", "brokers": 6, "degree": 3},
                ]
            ),
            "links.failure_probability": st.sampled_from([0.0, 0.1]),
            "links.failure_epoch_s": st.just(0.1),
            "links.loss_ratio": st.sampled_from([0.0, 0.05]),
            "faults.broker_failures_per_hour": st.sampled_from([600.0, 3000.0]),
            "faults.broker_outage_s": st.sampled_from([0.05, 0.5]),
            "faults.link_failures_per_hour": st.sampled_from([0.0, 1000.0]),
            "faults.link_outage_s": st.sampled_from([0.1, 1.0]),
            "broker.strategy": st.sampled_from(["d-tree", "r-tree", "dcrd", "multipath"]),
            "broker.transmissions": st.integers(1, 2),
        }
    )
)
def test_whatever_fails_and_returns_every_durable_message_arrives(changes: dict[str, Any]) -> None:
    always = {"broker.retry_every_s": 0.2, "run.drain_s": 60.0, "workload.rate_per_s": 20.0}
    _, tables = outcome(a_scenario({**always, **changes}, policy=KEPT))
    assert served(tables) >= wanted(tables)
