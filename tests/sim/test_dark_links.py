"""Whole runs in which links go dark and return: what waits leaves soon, and arrives once."""

from typing import Any

import pytest
from support.scenarios import Tables, a_scenario, outcome, served, wanted

from tidings.sim.scenario import Scenario

RETRY = {"broker.harmony.reroute": True, "broker.exhausted": "retry"}
DURABLE = {"workload.durable": True}
ONE = {"kind": "listed", "links_ms": [["n1", "n2", 50.0]]}
TRIANGLE = {
    "kind": "listed",
    "links_ms": [["n1", "n2", 10.0], ["n2", "n3", 10.0], ["n1", "n3", 10.0]],
}
LINE = {"kind": "listed", "links_ms": [["n1", "n2", 5.0], ["n2", "n3", 5.0]]}


def dark(
    topology: dict[str, Any], end: str, rate_per_s: float, outage: dict[str, Any], **changes: Any
) -> Scenario:
    """A publisher at n1 and a subscriber at one end, with paths that follow measured links."""
    return a_scenario(
        {"broker.estimates": "measured", "broker.strategy": "qos-path", **changes},
        topology=topology,
        workload={
            "publisher": [{"broker": "n1", "topic": "t", "rate_per_s": rate_per_s, "phase_s": 0.0}],
            "subscriber": [{"broker": end, "topic": "t"}],
        },
        faults={"schedule": [outage]},
    )


@pytest.mark.parametrize("to_s", [30.0, 37.0, 44.0])
def test_a_message_whose_answer_was_lost_is_not_delivered_again_after_it_was_forgotten(
    to_s: float,
) -> None:
    """Data has passed when the link goes dark, its acknowledgement has not. The simulator itself
    stops at a second delivery."""
    outage = {"link": ["n1", "n2"], "from_s": 20.92, "to_s": to_s}
    changes = {"run.seconds": 40.0, "run.drain_s": 30.0, "broker.remember_s": 20.0}
    _, tables = outcome(dark(ONE, "n2", 20.0, outage, **RETRY, **changes))
    missed = {message for message, _ in wanted(tables) - served(tables)}
    dropped = tables.get("dropped", [])
    assert {row["reason"] for row in dropped} <= {"exhausted"}
    assert missed <= {row["message"] for row in dropped}
    assert all(row["age_s"] < 20.0 for row in tables["delivered"])


@pytest.mark.parametrize("kept", [RETRY, DURABLE])
def test_what_waits_for_a_link_of_others_leaves_when_it_is_known_to_work_again(
    kept: dict[str, Any],
) -> None:
    """Parcels at n1 wait for the link between n2 and n3, which n2 tells to be up again."""
    outage = {"link": ["n2", "n3"], "from_s": 10.0, "to_s": 50.0}
    changes = {"run.seconds": 60.0, "run.drain_s": 40.0}
    _, tables = outcome(dark(LINE, "n3", 2.0, outage, **kept, **changes))
    assert served(tables) == wanted(tables)
    [up_at] = [
        row["recorded_at"]
        for row in tables["link_changed"]
        if (row["broker"], row["neighbour"]) == ("n2", "n3")
        and row["up"]
        and row["recorded_at"] > 10.0
    ]
    waited = [row["recorded_at"] for row in tables["delivered"] if row["age_s"] > 1.5]
    assert len(waited) > 50
    assert max(waited) < up_at + 1.2  # a pause of one second, and the way


# ---- a dark link among brokers with default settings


def dark_triangle(rate_per_s: float, end: str = "n3", **changes: Any) -> Scenario:
    """n1 speaks for 39 s. Its link to n3 is dark from 5 to 35 s, and nobody is told."""
    run = {"run.seconds": 39.0, "run.start_s": 2.0, "run.drain_s": 10.0}
    return a_scenario(
        {**run, **changes},
        topology=TRIANGLE,
        broker={},
        workload={
            "publisher": [
                {"broker": "n1", "topic": "t", "rate_per_s": rate_per_s, "phase_s": 0.005}
            ],
            "subscriber": [{"broker": end, "topic": "t"}],
        },
        faults={"schedule": [{"link": ["n1", "n3"], "from_s": 5.0, "to_s": 35.0}]},
    )


def turns(tables: Tables) -> dict[tuple[str, bool], list[float]]:
    """When n1 and n3 began to avoid their link, and when they used it again."""
    found: dict[tuple[str, bool], list[float]] = {}
    for row in tables["link_changed"]:
        if {row["broker"], row["neighbour"]} == {"n1", "n3"} and row["recorded_at"] > 2.0:
            found.setdefault((row["broker"], row["up"]), []).append(row["recorded_at"])
    return found


@pytest.mark.parametrize(("rate_per_s", "end"), [(100.0, "n3"), (1.0, "n3"), (100.0, "n2")])
def test_a_dark_link_is_avoided_after_about_a_second_in_use_or_not(
    rate_per_s: float, end: str
) -> None:
    _, tables = outcome(dark_triangle(rate_per_s, end))
    found = turns(tables)
    for broker in ("n1", "n3"):
        ((down_at,), (up_at,)) = found[broker, False], found[broker, True]
        assert 5.4 < down_at < 6.2
        assert 35.0 < up_at < 35.6
    assert served(tables) == wanted(tables)


def test_a_strategy_that_drops_loses_what_was_sent_in_that_second() -> None:
    _, tables = outcome(dark_triangle(100.0, **{"broker.exhausted": "drop"}))
    assert len(wanted(tables)) == 3_900
    assert 80 <= len(wanted(tables) - served(tables)) <= 120


def test_links_that_fail_for_a_second_now_and_then_do_not_flap() -> None:
    """Failures as DCRD has them: every third second would make a link suspect that is not slow."""
    _, tables = outcome(
        a_scenario(
            {"run.seconds": 300.0, "links.failure_probability": 0.06},
            topology=TRIANGLE,
            broker={},
        )
    )
    downs = [row for row in tables["link_changed"] if not row["up"]]
    assert len(downs) < 60, "18 failures on each of 3 links, seen from 2 ends, are 108"


# ---- a dark link, and then the broker of the detour dies

KILLED_S, RESTARTED_S, LIGHT_S = 12.0, 20.0, 35.0
REROUTING = {"broker.harmony.reroute": True}
ONE_WAY = [("dcrd", {}), ("qos-path", REROUTING), ("qos-path", {}), ("d-tree", {}), ("direct", {})]


def killed_detour(strategy: str, **changes: Any) -> Scenario:
    """n1 speaks to n3 for 39 s. Their link is dark for half a minute, and nobody is told; n2, over
    which the detour goes, is dead for eight seconds of it."""
    run = {"run.seconds": 39.0, "run.start_s": 2.0, "run.drain_s": 60.0}
    return a_scenario(
        {"broker.estimates": "measured", "broker.strategy": strategy, **run, **changes},
        topology=TRIANGLE,
        workload={
            "publisher": [{"broker": "n1", "topic": "t", "rate_per_s": 20.0, "phase_s": 0.005}],
            "subscriber": [{"broker": "n3", "topic": "t"}],
        },
        faults={
            "schedule": [
                {"link": ["n1", "n3"], "from_s": 5.0, "to_s": LIGHT_S},
                {"broker": "n2", "from_s": KILLED_S, "to_s": RESTARTED_S},
            ]
        },
    )


@pytest.mark.parametrize(("strategy", "changes"), ONE_WAY)
def test_a_dark_link_and_a_killed_detour_cost_no_message(
    strategy: str, changes: dict[str, Any]
) -> None:
    _, tables = outcome(
        killed_detour(strategy, **changes)
    )  # the checker sees that none comes twice
    held = {r["message"] for r in tables.get("dropped", ()) if r["reason"] == "broker-failed"}
    assert {row["reason"] for row in tables.get("dropped", ())} <= {"broker-failed"}
    assert {message for message, _ in wanted(tables) - served(tables)} <= held
    assert len(held) <= 2  # what n2 had in its hands
    waited = [row for row in tables["delivered"] if row["age_s"] > 1.0]
    assert len(waited) > 7 * 20
    end_s = LIGHT_S if strategy == "direct" else RESTARTED_S
    assert (
        max(row["recorded_at"] for row in waited) < end_s + 7.0
    )  # a probe finds it up, and then a second


@pytest.mark.parametrize(("strategy", "changes"), ONE_WAY)
def test_with_drop_they_cost_all_that_had_no_way(strategy: str, changes: dict[str, Any]) -> None:
    _, tables = outcome(killed_detour(strategy, **changes, **{"broker.exhausted": "drop"}))
    assert len(wanted(tables) - served(tables)) > 7 * 20
    assert max(row["age_s"] for row in tables["delivered"]) < 0.5


@pytest.mark.parametrize(("strategy", "changes"), ONE_WAY)
def test_what_must_not_be_late_waits_no_longer_than_its_deadline(
    strategy: str, changes: dict[str, Any]
) -> None:
    scenario = killed_detour(
        strategy, **changes, **{"workload.subscriber": [SOON], "run.drain_s": 10.0}
    )
    _, tables = outcome(scenario)
    assert max(row["age_s"] for row in tables["delivered"]) <= 4.0
    missed = {message for message, _ in wanted(tables) - served(tables)}
    assert missed <= {row["message"] for row in tables["dropped"]}
    assert 0 < len(missed) < len(wanted(tables))


SOON = {"broker": "n3", "topic": "t", "deadline_ms": 4000.0, "late": "drop"}


@pytest.mark.parametrize("strategy", ["flooding", "multipath", "qos-multipath"])
def test_copies_do_not_multiply_by_waiting(strategy: str) -> None:
    per_delivery = {}
    for exhausted in ("retry", "drop"):
        result, _ = outcome(killed_detour(strategy, **{"broker.exhausted": exhausted}))
        per_delivery[exhausted] = result.hops / result.deliveries
    assert per_delivery["retry"] < 1.1 * per_delivery["drop"]


@pytest.mark.parametrize("strategy", ["dcrd", "d-tree"])
def test_a_destination_that_dies_before_its_answer_gets_nothing_twice(strategy: str) -> None:
    """n2 has delivered what it could not acknowledge any more; when it is back it knows nothing of
    that, and its client subscribes again."""
    workload = {
        "publisher": [{"broker": "n1", "topic": "t", "rate_per_s": 50.0, "phase_s": 0.0}],
        "subscriber": [{"broker": "n2", "topic": "t"}],
    }
    scenario = a_scenario(
        {"broker.strategy": strategy, "run.drain_s": 20.0},
        topology=ONE,
        workload=workload,
        faults={
            "schedule": [
                {"link": ["n1", "n2"], "from_s": 1.97, "to_s": 2.4},
                {"broker": "n2", "from_s": 2.0, "to_s": 2.5},
            ]
        },
    )
    _, tables = outcome(scenario)
    messages = [row["message"] for row in tables["delivered"]]
    assert len(messages) == len(set(messages))
    refused = [row for row in tables["dropped"] if row["broker"] == "n2"]
    assert {row["reason"] for row in refused} == {"broker-failed"}
    assert {row["message"] for row in refused} & set(messages)
    missed = {message for message, _ in wanted(tables) - served(tables)}
    assert missed <= {row["message"] for row in refused}  # the rest has waited for it


def test_what_can_never_arrive_is_tried_a_few_times_and_given_up() -> None:
    outage = {"link": ["n1", "n2"], "from_s": 1.0, "to_s": 1e6}
    changes = {"broker.strategy": "d-tree", "broker.estimates": "pinned"}
    run = {"run.seconds": 2.0, "run.drain_s": 200.0}
    result, tables = outcome(dark(ONE, "n2", 1.0, outage, **changes, **run))
    assert not served(tables)
    assert {row["reason"] for row in tables["dropped"]} == {"exhausted"}
    assert max(row["recorded_at"] for row in tables["dropped"]) < 120.0 + 3.0
    assert result.hops <= 15 * result.publications
