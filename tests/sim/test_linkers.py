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


@pytest.mark.parametrize("linking", CHOOSING)
def test_two_halves_that_meet_again_are_one_overlay_and_nothing_is_lost_or_repeated(
    linking: str,
) -> None:
    names = [f"b{number}" for number in range(1, 9)]
    dark = [(a, b) for a in names[:4] for b in names[4:]]
    schedule = [{"link": [a, b], "from_s": 7.0, "to_s": 14.0} for a, b in dark]
    topology = {"kind": "full-mesh", "brokers": len(names)}
    run = {"seconds": 12.0, "start_s": 6.0, "drain_s": 30.0}
    rows = choosing(linking, topology=topology, run=run, faults={"schedule": schedule})
    assert served(rows) == wanted(rows) != set()
    during = [row for row in rows["delivered"] if row["age_s"] > 1.0]
    assert during, "some waited for the others to come back"
    near, reached = links_at_the_end(rows), {names[0]}
    for _ in names:
        reached |= {other for name in reached for other in near[name]}
    assert reached == {*names}


@pytest.mark.parametrize("linking", CHOOSING)
def test_a_joiner_that_dies_in_the_middle_is_forgotten_by_all(linking: str) -> None:
    absence = [
        {"broker": "b12", "from_s": 0.0, "to_s": 3.0},
        {"broker": "b12", "from_s": 3.1},
    ]
    broker = {"linking": linking, "estimates": "measured", "report_lifetime_s": 4.0}
    run = {"seconds": 6.0, "start_s": 12.0, "drain_s": 4.0}
    rows = choosing(linking, dynamics={"absence": absence}, broker=broker, run=run)
    assert any(row["broker"] == "b12" and row["up"] for row in rows["link_changed"])
    near = links_at_the_end(rows)
    assert not any("b12" in others for name, others in near.items() if name != "b12")
    others = {(m, s) for m, s in wanted(rows) if not s.startswith("b12/")}
    assert {(m, s) for m, s in served(rows) if not s.startswith("b12/")} == others != set()
