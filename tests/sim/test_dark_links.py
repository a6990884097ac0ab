"""Whole runs in which links go dark and return: what waits leaves soon, and arrives once."""

from typing import Any

import pytest
from support.scenarios import a_scenario, outcome, served, wanted

from tidings.sim.scenario import Scenario

RETRY = {"broker.harmony.reroute": True, "broker.exhausted": "retry"}
DURABLE = {"workload.durable": True}
ONE = {"kind": "listed", "links_ms": [["n1", "n2", 50.0]]}
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
        row["at"]
        for row in tables["link_changed"]
        if (row["broker"], row["neighbour"]) == ("n2", "n3") and row["up"] and row["at"] > 10.0
    ]
    waited = [row["at"] for row in tables["delivered"] if row["age_s"] > 1.5]
    assert len(waited) > 50
    assert max(waited) < up_at + 1.2  # a pause of one second, and the way
