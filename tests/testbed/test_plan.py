"""What a scenario becomes on this machine: the same links as in the simulator."""

import tomllib
from pathlib import Path

import pytest
from msgspec.structs import astuple

from tidings.live.config import parse
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.testbed.broker_files import to_toml
from tidings.testbed.plan import plan

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SEATTLE, BOUNDED = SCENARIOS / "seattle.toml", SCENARIOS / "bounded.toml"
HARMONY_TENTH = SCENARIOS / "harmony-tenth.toml"


def test_every_live_link_is_emulated_as_the_simulator_has_it(tmp_path: Path) -> None:
    setup = set_up(load(SEATTLE, {"live.mqtt_port": 0, "topology.hosts": 4, "workload.topics": 2}))
    links = setup.conditions
    for name, broker in plan(setup, "live", tmp_path).brokers.items():
        for neighbour in broker.neighbour:
            ends = tuple(sorted((name, neighbour.name)))
            assert neighbour.emulate is not None
            assert neighbour.emulate.conditions() == links[ends]
            assert neighbour.emulate.delay_steps


def test_a_drawn_rate_is_emulated_and_believed_as_in_the_simulator(tmp_path: Path) -> None:
    changes = {"live.mqtt_port": 0, "topology.layer_sizes": [2, 2]}
    changes |= {"workload.content.publishers": 2, "workload.content.subscriber_brokers": 2}
    setup = set_up(load(BOUNDED, changes))
    links = setup.conditions
    for name, broker in plan(setup, "live", tmp_path).brokers.items():
        read = parse(tomllib.loads(to_toml(broker)), name)
        for neighbour in read.neighbour:
            link = links[min(name, neighbour.name), max(name, neighbour.name)]
            assert neighbour.emulate is not None
            assert neighbour.emulate.conditions() == link
            assert 50e-6 <= link.s_per_byte < 100e-6
            assert link.deviation_s_per_byte == 20e-6
            told, known = neighbour.known(), setup.estimates(name)[neighbour.name]
            assert told is not None
            assert known is not None
            assert astuple(told) == pytest.approx(astuple(known))


@pytest.mark.parametrize("slow", [{}, {"faults.slots.delay_ms": 100}], ids=["silent", "slow"])
def test_a_link_is_silent_or_slow_in_the_slots_that_were_drawn_for_it(
    tmp_path: Path, slow: dict[str, int]
) -> None:
    setup = set_up(load(HARMONY_TENTH, {"live.mqtt_port": 0} | slow))
    bad = setup.outages
    slots = bad.slow if slow else bad.links
    assert sum(len(spells) for spells in slots.values()) >= 10
    for name, broker in plan(setup, "live", tmp_path).brokers.items():
        for neighbour in parse(tomllib.loads(to_toml(broker)), name).neighbour:
            spells = slots[min(name, neighbour.name), max(name, neighbour.name)]
            emulate = neighbour.emulate
            assert emulate is not None
            assert emulate.outages == (() if slow else spells)
            steps = [
                step for from_s, to_s in spells for step in ((from_s, 0.1), (to_s, emulate.delay_s))
            ]
            assert emulate.delay_steps == (tuple(steps) if slow else ())


def test_pinned_estimates_say_how_often_a_link_fails(tmp_path: Path) -> None:
    changes = {"live.mqtt_port": 0, "broker.estimates": "pinned", "links.failure_probability": 0.06}
    setup = set_up(load(HARMONY_TENTH, changes))
    believed = [n.known() for n in plan(setup, "live", tmp_path).brokers["n1"].neighbour]
    assert [link and link.availability for link in believed] == [0.94] * 4


def test_links_that_come_and_go_are_all_known_and_none_is_awaited(tmp_path: Path) -> None:
    setup = set_up(load(SCENARIOS / "moving.toml", {"run.seconds": 5}))
    planned = plan(setup, "live", tmp_path)
    assert planned.links.moves == setup.moves
    assert len(planned.links.at_first) == len(setup.overlay.links)
    ever = {frozenset(ends) for ends in setup.conditions}
    assert len(ever) > len(setup.overlay.links)
    found = {frozenset((b, n.name)) for b, c in planned.brokers.items() for n in c.neighbour}
    assert found == ever
    for name, broker in planned.brokers.items():
        read = parse(tomllib.loads(to_toml(broker)), name)
        assert not any(neighbour.awaited for neighbour in read.neighbour)
        assert read.moves
        assert not read.links_itself
