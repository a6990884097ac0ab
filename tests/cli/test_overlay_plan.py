"""What a scenario becomes on this machine: the same links as in the simulator."""

from pathlib import Path

from tidings.cli.overlay_plan import plan
from tidings.sim.faults import outages
from tidings.sim.network import conditions
from tidings.sim.scenario import load

SEATTLE = Path(__file__).parents[2] / "scenarios" / "seattle.toml"


def test_every_live_link_is_emulated_as_the_simulator_has_it(tmp_path: Path) -> None:
    scenario = load(SEATTLE, {"live.mqtt_port": 0, "topology.hosts": 4, "workload.topics": 2})
    overlay = scenario.overlay()
    links = conditions(scenario, overlay, outages(scenario, overlay))
    for name, broker in plan(scenario, "live", tmp_path).brokers.items():
        for neighbour in broker.neighbour:
            ends = tuple(sorted((name, neighbour.name)))
            assert neighbour.emulate is not None
            assert neighbour.emulate.conditions() == links[ends]
            assert neighbour.emulate.delay_steps
