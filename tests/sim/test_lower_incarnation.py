"""A broker that comes back with a lower number than before, in virtual time."""

from typing import Any

import pyarrow as pa
import pytest
from support.scenarios import Tables, a_scenario, served, wanted

from tidings.scenarios.set_up import set_up
from tidings.sim.world import World
from tidings.traces.recorder import Recorder

SCHEDULE = [{"broker": "b2", "from_s": 2.0, "to_s": 2.5}]
HEARD_AGAIN_AT = 4.0  # long after the links are up again


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd", "qos-path"])
def test_a_broker_that_returns_with_a_lower_incarnation_carries_messages_for_good(
    strategy: str,
) -> None:
    """b1 ── b2 ── b3: of the link from b2 to b3, b1 knows only from b2. What the former life said
    of it is too old after six seconds, and is remembered for another six, against all b2 says.
    """
    tables = run_with_lower_incarnation("b2", strategy)
    late = {row["message"] for row in tables["published"] if row["recorded_at"] > HEARD_AGAIN_AT}
    assert len(late) > 100
    missed = wanted(tables) - served(tables)
    assert [message for message, _ in missed if message in late] == []


def run_with_lower_incarnation(name: str, strategy: str) -> Tables:
    tables: Tables = {}

    def sink(table: str, batch: pa.RecordBatch) -> None:
        tables.setdefault(table, []).extend(batch.to_pylist())

    setup = set_up(line(strategy))
    world = World(setup, Recorder("lower", "sim", sink))
    world._nodes[name].incarnation = -1  # one more, when it returns, is less than its first
    world.run()
    return tables


def line(strategy: str) -> Any:
    settings = {"broker.strategy": strategy, "broker.estimates": "measured"}
    return a_scenario(
        {**settings, "broker.report_lifetime_s": 6.0, "run.seconds": 20.0},
        topology={"kind": "listed", "links_ms": [["b1", "b2", 20.0], ["b2", "b3", 20.0]]},
        workload={
            "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 10.0}],
            "subscriber": [{"broker": "b3", "topic": "t", "name": "s"}],
        },
        faults={"schedule": SCHEDULE},
    )
