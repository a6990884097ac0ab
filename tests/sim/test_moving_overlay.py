"""Real brokers in a simulated overlay whose links, and brokers, come and go: the laws of every run
are watched by the world, so a run that ends has kept them."""

from __future__ import annotations

from typing import Any

import pytest
from support.scenarios import Tables, a_scenario, audiences, outcome, served, wanted

from tidings.routing import ROUTERS

RESTLESS: dict[str, Any] = {"break_every_s": 0.1, "repair_s": 0.1}
RESTLESS_MEMBERS = RESTLESS | {
    "departures_per_hour": 240.0,
    "absence_s": 1.0,
    "crash_share": 0.5,
    "absence": [
        {"broker": "b12", "from_s": 0.0, "to_s": 2.0},
        {"broker": "b11", "from_s": 3.0, "leaves": True},
    ],
}


def moving(strategy: str = "d-tree", **tables: Any) -> tuple[float, Tables]:
    """The delivery ratio of a run on a restless overlay of twelve brokers, and its rows."""
    topology = {"kind": "random-degree", "brokers": 12, "degree": 4}
    scenario = a_scenario({"broker.strategy": strategy}, **{"topology": topology, **tables})
    _, rows = outcome(scenario)
    return len(served(rows) & wanted(rows)) / len(wanted(rows)), rows


@pytest.mark.parametrize("strategy", sorted(ROUTERS))
@pytest.mark.parametrize("estimates", ["pinned", "measured"])
def test_the_laws_hold_under_every_strategy_while_links_come_and_go(
    strategy: str, estimates: str
) -> None:
    broker = {"estimates": estimates}
    ratio, rows = moving(strategy, dynamics=RESTLESS, broker=broker)
    changes = {row["up"] for row in rows["link_changed"]}
    assert changes == {True, False}
    if strategy in ("dcrd", "d-tree", "r-tree", "best-path", "qos-path", "balanced"):
        assert ratio == 1.0, "what has no way left waits for one"


@pytest.mark.parametrize("strategy", sorted(ROUTERS))
def test_the_laws_hold_while_brokers_come_and_go_too(strategy: str) -> None:
    ratio, rows = moving(strategy, dynamics=RESTLESS_MEMBERS)
    assert any(not row["active"] for row in rows["subscribed"]), "somebody left in good order"
    assert 0.0 < ratio <= 1.0


def test_a_broker_that_joins_later_is_served_from_then_on() -> None:
    table = {"absence": [{"broker": "b12", "from_s": 0.0, "to_s": 2.5}]}
    workload = {
        "rate_per_s": 10.0,
        "publisher": [{"broker": "b01", "topic": "t"}],
        "subscriber": [{"broker": "b12", "topic": "t", "name": "late"}],
    }
    _, rows = moving(dynamics=table, workload=workload)
    wish = rows["subscribed"][0]
    assert wish["recorded_at"] == 2.5
    told = 0.5  # seconds, for its wish to spread; messages take less than 0.2
    after = {
        (row["message"], s)
        for row in audiences(rows)
        for s in row["interested"]
        if row["recorded_at"] > 2.5 + told
    }
    assert after
    assert after <= served(rows)


def test_what_is_on_a_link_that_is_cut_is_lost_there_and_sent_another_way() -> None:
    workload = {
        "rate_per_s": 200.0,
        "publisher": [{"broker": "b01", "topic": "t"}],
        "subscriber": [{"broker": "b07", "topic": "t", "name": "s"}],
    }
    ratio, rows = moving(dynamics=RESTLESS, workload=workload, broker={"trace": "hops"})
    assert ratio == 1.0
    crossings = len(rows["forwarded"])
    acknowledged = len(rows["acknowledged"])
    assert crossings > acknowledged, "some crossings had no answer, as their links went"


def test_durable_messages_outlive_crashes_in_a_moving_overlay() -> None:
    table = RESTLESS | {"absence": [{"broker": "b05", "from_s": 2.0, "to_s": 4.0}]}
    workload = {"topics": 5, "rate_per_s": 5.0, "durable": True}
    run = {"seconds": 4.0, "start_s": 1.0, "drain_s": 20.0}
    workload["subscribe_probability"] = [1.0, 1.0]
    ratio, _ = moving(dynamics=table, workload=workload, run=run)
    assert ratio == 1.0


def test_the_same_seed_gives_the_same_run() -> None:
    topology = {"kind": "random-degree", "brokers": 12, "degree": 4}

    def digest(seed: int) -> str:
        scenario = a_scenario({"run.seed": seed}, topology=topology, dynamics=RESTLESS_MEMBERS)
        return outcome(scenario)[0].digest

    assert digest(1) == digest(1) != digest(2)


@pytest.mark.parametrize("hops", [0, 2])
def test_open_messages_reach_everybody_in_a_network_that_holds_and_most_in_one_that_moves(
    hops: int,
) -> None:
    broker = {"interests": hops}
    ratio, rows = moving("flooding", broker=broker)
    assert ratio == 1.0
    assert not rows.get("dropped")
    ratio, rows = moving("flooding", broker=broker, dynamics=RESTLESS)
    assert ratio > 0.95
    ratio, rows = moving("flooding", broker=broker, dynamics=RESTLESS_MEMBERS)
    assert ratio > 0.5
