"""How fast is DCRD simulated, beside d-tree and beside a bare SimPy timeout loop?

The scenario is the paper's full mesh of 20 brokers at failure probability 0.06 with its timer
(`scenarios/dcrd.toml`), traced. A delivery is one message handed to one subscription; each needs
1.3 data transmissions or so, with their acknowledgements and timers. All rates are by CPU time in
one run, alternating, with the start-up (in which brokers work out their sending lists) timed apart.
The long runs are the paper's two hours in the mesh, and on 160 brokers of degree 8, each in a
process of its own.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from _report import Line, line, run
from _simulated import long_run, timeouts_per_s

from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.world import simulate

SCENARIO = Path(__file__).parent.parent / "scenarios" / "dcrd.toml"
MESH: dict[str, Any] = {"links.failure_probability": 0.06, "run.seed": 1}
LARGE: dict[str, Any] = {
    "topology": {"kind": "random-degree", "brokers": 160, "degree": 8, "delay_ms": [10, 50]}
}
MESH_SECONDS, LARGE_SECONDS, LARGE_MB = 60.0, 600.0, 2_000.0  # what two hours may take


def measured(quick: bool) -> list[Line]:
    seconds, rates = 600 if quick else 1_800, {"dcrd": 0.0, "d-tree": 0.0}
    timeouts = 0.0
    simulate(set_up(load(SCENARIO, MESH | {"run.seconds": 1.0})))  # done once per process
    for _ in range(2 if quick else 4):  # the least disturbed of each
        timeouts = max(timeouts, timeouts_per_s())
        for strategy, rate in rates.items():
            rates[strategy] = max(rate, deliveries_per_s(strategy, seconds))
    dcrd, tree = rates["dcrd"], rates["d-tree"]
    part = 0.1 if quick else 1.0
    return [
        line("dcrd beside d-tree", dcrd, "deliveries/s", tree, dcrd / tree),
        line("dcrd beside SimPy timeouts", dcrd, "deliveries/s", timeouts, dcrd / timeouts),
        line("d-tree beside SimPy timeouts", tree, "deliveries/s", timeouts, tree / timeouts),
        *two_hours("20 brokers", {}, part, MESH_SECONDS, None),
        *two_hours("160 brokers", LARGE, part, LARGE_SECONDS, LARGE_MB),
    ]


def deliveries_per_s(strategy: str, seconds: float) -> float:
    """What one strategy delivers per second of CPU time, start-up taken off."""
    start_s, start = timed(strategy, 1.0)
    whole_s, whole = timed(strategy, seconds)
    return (whole - start) / (whole_s - start_s)


def timed(strategy: str, seconds: float) -> tuple[float, int]:
    scenario = load(SCENARIO, MESH | {"broker.strategy": strategy, "run.seconds": seconds})
    started_at = time.process_time()
    deliveries = simulate(set_up(scenario)).deliveries
    return time.process_time() - started_at, deliveries


def two_hours(
    what: str, changes: dict[str, Any], part: float, most_s: float, most_mb: float | None
) -> list[Line]:
    """The paper's run with DCRD. A part of it is scaled up, start-up included, so it errs high."""
    found = long_run(
        SCENARIO, MESH | changes | {"broker.strategy": "dcrd", "run.seconds": 7_200.0 * part}
    )
    took, megabytes = found["seconds"] / part, found["megabytes"]
    lines = [line(f"two hours, {what}", took, "s", most_s, most_s / took, 1.0)]
    if most_mb is not None:
        name = f"two hours, {what}: memory"
        lines.append(line(name, megabytes, "MB", most_mb, most_mb / megabytes, 1.0))
    return lines


if __name__ == "__main__":
    run("dcrd", __doc__, measured)
