"""The schedule of links that come and go: what it promises about the graph at every instant."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import a_scenario

from tidings.core.errors import ConfigError
from tidings.scenarios.set_up import set_up
from tidings.sim.moves import Move
from tidings.sim.setup import Setup

DEGREE = 4


def a_setup(seed: int = 1, brokers: int = 16, **dynamics: Any) -> Setup:
    topology = {"kind": "random-degree", "brokers": brokers, "degree": DEGREE}
    scenario = a_scenario({"run.seed": seed}, topology=topology, dynamics=dynamics)
    return set_up(scenario)


def degrees_after(setup: Setup) -> list[tuple[Move, Counter[str]]]:
    """Each move, with the degrees of all brokers that have links after it; no link may appear that
    is there, or go that is not."""
    links = {(link.a, link.b) for link in setup.overlay.links}
    degrees = Counter(end for ends in links for end in ends)
    found = []
    for move in setup.moves:
        ends = (move.a, move.b)
        assert (ends in links) != move.up
        links ^= {ends}
        degrees.update(dict.fromkeys(ends, 1 if move.up else -1))
        found.append((move, +degrees))
    return found


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), brokers=st.integers(8, 24), every_s=st.floats(0.01, 1.0))
def test_a_link_that_breaks_is_replaced_and_degrees_stay_within_one(
    seed: int, brokers: int, every_s: float
) -> None:
    setup = a_setup(seed, brokers, break_every_s=every_s, repair_s=0.1)
    changes = Counter[bool]()
    for move, degrees in degrees_after(setup):
        changes[move.up] += 1
        assert all(abs(degrees[broker] - DEGREE) <= 1 for broker in setup.overlay.brokers), move
        # What is missing is under repair: no more than what breaks in that time, and the last one.
        assert changes[False] - changes[True] <= 0.1 / every_s + 2
    assert changes[False] > 0


def test_without_dynamics_nothing_moves() -> None:
    assert a_setup().moves == ()
    assert a_setup().ever_linked is not None


def test_the_schedule_belongs_to_the_seed_and_not_to_the_strategy() -> None:
    def moves(seed: int, strategy: str) -> tuple[Move, ...]:
        topology = {"kind": "random-degree", "brokers": 16, "degree": DEGREE}
        changes = {"run.seed": seed, "broker.strategy": strategy}
        return set_up(a_scenario(changes, topology=topology, dynamics={"break_every_s": 0.2})).moves

    assert moves(1, "dcrd") == moves(1, "flooding") != moves(2, "dcrd")


def test_a_link_that_appears_has_the_delay_that_it_has_in_a_mesh() -> None:
    setup = a_setup(break_every_s=0.1)
    mesh = set_up(a_scenario(topology={"kind": "full-mesh", "brokers": 16}))
    fresh = set(setup.ever_linked.links) - set(setup.overlay.links)
    assert fresh
    assert fresh <= set(mesh.overlay.links)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 1.0))
def test_a_broker_that_is_gone_has_no_links_and_one_that_is_back_has(
    seed: int, share: float
) -> None:
    setup = a_setup(seed, departures_per_hour=1800.0, absence_s=1.0, crash_share=share)
    assert any(setup.outages.absences.values())
    seen = degrees_after(setup)
    for place, (move, degrees) in enumerate(seen):
        if place + 1 < len(seen) and seen[place + 1][0].at == move.at:
            continue  # more happens at that instant
        for broker in setup.overlay.brokers:
            gone = setup.outages.absences.get(broker, ())
            if any(start <= move.at < end for start, end in gone):
                assert degrees[broker] == 0
            elif not any(end == move.at for _, end in gone):
                assert degrees[broker] <= DEGREE + 1


def test_a_broker_that_joins_later_has_no_links_before() -> None:
    absence = [{"broker": "b16", "from_s": 0.0, "to_s": 3.0}]
    setup = a_setup(absence=absence)
    at = {move.at for move in setup.moves if "b16" in (move.a, move.b) and move.up}
    assert at == {3.0}
    assert {move.at for move in setup.moves if "b16" in (move.a, move.b) and not move.up} == {0.0}


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ({"delay_ms": [5.0, 2.0]}, "dynamics.delay_ms"),
        ({"degree": 99}, "dynamics.degree"),
        ({"break_every_s": 1e-9}, "dynamics.break_every_s"),
        ({"absence": [{"broker": "b99"}]}, "dynamics.absence[0].broker"),
        ({"absence": [{"broker": "b01", "from_s": 3, "to_s": 2}]}, "dynamics.absence[0].to_s"),
        ({"absence": [{"broker": "b01", "leaves": True}]}, "dynamics.absence[0].leaves"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(table: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        a_setup(**table)
    assert refused.value.field == field
