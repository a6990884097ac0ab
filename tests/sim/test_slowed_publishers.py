"""A publisher that says more than a link carries is slowed; nothing is lost for want of room."""

from typing import Any

import pytest
from support.scenarios import Tables, a_scenario, outcome, served, wanted

from tidings.sim.result import Result

# Ten messages a second fit the link; a hundred are offered for four seconds.
SLOW_LINK = {
    "topology": {"kind": "full-mesh", "brokers": 2},
    "links.rate_kbit_per_s": 16.0,
    "broker.queue_parcels": 40,
    "run.drain_s": 100.0,
}
LOAD: dict[str, Any] = {
    "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 100.0, "payload_bytes": 130}],
    "subscriber": [{"broker": "b2", "topic": "t", "name": "s"}],
}


def ran(**changes: Any) -> tuple[Result, Tables]:
    names = {name.replace("__", "."): value for name, value in changes.items()}
    return outcome(a_scenario(SLOW_LINK | names, workload=LOAD))


def test_nothing_is_lost_and_the_trace_tells_who_waited_for_how_long() -> None:
    result, tables = ran()
    assert "dropped" not in tables
    assert len(served(tables)) == len(wanted(tables)) == 400
    slowed = tables["slowed"]
    assert {(row["broker"], row["publisher"]) for row in slowed} == {("b1", "t")}
    assert all(row["waited_s"] > 0 for row in slowed)
    last_at = max(row["recorded_at"] for row in tables["published"])
    assert last_at > 20.0, "it took much longer than four seconds to say it all"
    assert result.unpublished == 0


def test_a_publisher_whose_link_is_fast_enough_never_waits() -> None:
    _, tables = ran(links__rate_kbit_per_s=1_000.0)
    assert "slowed" not in tables
    assert len(served(tables)) == 400


def test_what_a_deadline_deletes_slows_nobody() -> None:
    workload = LOAD | {"subscriber": [{**LOAD["subscriber"][0], "deadline_ms": 300.0}]}
    load = workload | {"late": "drop"}
    load["subscriber"][0]["late"] = "drop"
    _, tables = outcome(a_scenario(SLOW_LINK | {"broker.queue_parcels": 4_000}, workload=load))
    assert "slowed" not in tables
    assert {row["reason"] for row in tables["dropped"]} == {"expired"}


@pytest.mark.parametrize("seed", range(3))
def test_publishers_that_wait_go_on_after_their_broker_was_down(seed: int) -> None:
    outage = {"broker": "b1", "from_s": 3.0, "to_s": 4.0}
    result, tables = ran(faults={"schedule": [outage]}, run__seed=seed)
    assert result.unpublished > 0
    assert max(row["recorded_at"] for row in tables["published"]) > 4.0
