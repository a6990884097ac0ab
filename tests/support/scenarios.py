"""Small scenarios, and the rows that their runs leave."""

from typing import Any

import pyarrow as pa

from tidings.core.document import changed
from tidings.core.trace import TABLES
from tidings.scenarios.read import parse
from tidings.scenarios.set_up import set_up
from tidings.sim.result import Result
from tidings.sim.scenario import Scenario
from tidings.sim.world import simulate
from tidings.traces.audience import with_audience
from tidings.traces.schemas import arrow_schema

SMALL: dict[str, Any] = {
    "run": {"seconds": 4.0, "start_s": 1.0, "drain_s": 3.0},
    "topology": {"kind": "full-mesh", "brokers": 4},
    "workload": {"topics": 3, "rate_per_s": 5.0, "subscribe_probability": [1.0, 1.0]},
    "broker": {"estimates": "pinned"},
}

Tables = dict[str, list[dict[str, Any]]]


def a_scenario(changes: dict[str, Any] | None = None, **tables: Any) -> Scenario:
    """A run of a few seconds among four brokers; `changes` by dotted names, `tables` whole."""
    return parse(changed({**SMALL, **tables}, changes or {}), "small.toml", "")


def outcome(scenario: Scenario) -> tuple[Result, Tables]:
    """What a run came to, and its rows by table."""
    tables: Tables = {}

    def sink(table: str, batch: pa.RecordBatch) -> None:
        tables.setdefault(table, []).extend(batch.to_pylist())

    return simulate(set_up(scenario), sink=sink), tables


def arrow_tables(scenario: Scenario) -> dict[str, pa.Table]:
    """The rows of a run, as the pipeline reads them."""
    batches: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}
    simulate(set_up(scenario), sink=lambda table, batch: batches[table].append(batch))
    return {
        table: pa.Table.from_batches(batches[table], arrow_schema(row_type))
        for table, row_type in TABLES.items()
    }


def served(tables: Tables) -> set[tuple[int, str]]:
    """All (message, subscription) that were delivered."""
    return {(r["message"], s) for r in tables.get("delivered", ()) for s in r["subscriptions"]}


def wanted(tables: Tables) -> set[tuple[int, str]]:
    """All (message, subscription) that should have been."""
    return {(r["message"], s) for r in audiences(tables) for s in r["interested"]}


def audiences(tables: Tables) -> list[dict[str, Any]]:
    """The publications, each with those who wanted it."""
    published, subscribed = (
        pa.Table.from_pylist(tables.get(table, []), arrow_schema(TABLES[table]))
        for table in ("published", "subscribed")
    )
    found: list[dict[str, Any]] = with_audience(published, subscribed).to_pylist()
    return found
