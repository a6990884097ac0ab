"""Brokers that choose their links themselves, in virtual time: they join, and find each other."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from support.scenarios import Tables, a_scenario, outcome, served, wanted

from tidings.core.errors import ConfigError
from tidings.linking import LINKERS
from tidings.scenarios.set_up import set_up
from tidings.sim.underlay import Underlay

CHOOSING = sorted(LINKERS.keys() - {"configured"})


def choosing(linking: str, changes: dict[str, Any] | None = None, **tables: Any) -> Tables:
    topology = {"kind": "random-degree", "brokers": 12, "degree": 4}
    broker = {"linking": linking, "estimates": "measured"}
    run = {"seconds": 8.0, "start_s": 6.0, "drain_s": 4.0}
    all_tables = {"topology": topology, "broker": broker, "run": run, **tables}
    return outcome(a_scenario(changes, **all_tables))[1]


def links_at_the_end(rows: Tables) -> dict[str, set[str]]:
    near: dict[str, set[str]] = defaultdict(set)
    for row in sorted(rows["link_changed"], key=lambda row: row["recorded_at"]):
        if row["up"]:
            near[row["broker"]].add(row["neighbour"])
        else:
            near[row["broker"]].discard(row["neighbour"])
    return near


@pytest.mark.parametrize("linking", CHOOSING)
def test_brokers_that_know_two_members_find_all_others_and_everything_arrives(linking: str) -> None:
    rows = choosing(linking)
    assert served(rows) == wanted(rows) != set()
    near = links_at_the_end(rows)
    assert all(a in near[b] for a in near for b in near[a]), "both ends agree"
    degrees = [len(others) for others in near.values()]
    assert len(degrees) == 12
    if linking == "full-mesh":
        assert set(degrees) == {11}
    elif linking == "random":
        assert min(degrees) >= 4
        assert max(degrees) <= 8


@pytest.mark.parametrize("linking", CHOOSING)
def test_the_laws_hold_while_members_come_and_go(linking: str) -> None:
    dynamics = {
        "join_every_s": 0.2,
        "departures_per_hour": 120.0,
        "absence_s": 2.0,
        "crash_share": 0.5,
    }
    rows = choosing(linking, dynamics=dynamics, broker={"linking": linking, "strategy": "dcrd"})
    assert len(served(rows) & wanted(rows)) > 0.8 * len(wanted(rows))


def test_what_the_topology_says_of_a_link_holds_for_it_and_others_take_the_shortest_path() -> None:
    topology = {"kind": "listed", "links_ms": [["a", "b", 10.0], ["b", "c", 20.0]]}
    setup = set_up(a_scenario({"workload.topics": 1}, topology=topology))
    underlay = Underlay(setup)
    assert underlay.conditions("a", "b").delay_s == pytest.approx(0.010)
    assert underlay.conditions("c", "a").delay_s == pytest.approx(0.030)


def test_links_that_break_by_a_schedule_and_links_that_are_chosen_exclude_each_other() -> None:
    with pytest.raises(ConfigError) as refused:
        choosing("random", dynamics={"break_every_s": 1.0})
    assert refused.value.field == "dynamics.break_every_s"


def test_the_same_seed_gives_the_same_overlay() -> None:
    topology = {"kind": "random-degree", "brokers": 12, "degree": 4}

    def digest() -> str:
        broker = {"linking": "random", "estimates": "measured"}
        return outcome(a_scenario(topology=topology, broker=broker))[0].digest

    assert digest() == digest()
