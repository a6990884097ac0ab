"""How fast is DCRD simulated beside d-tree, and how long do its paper's runs take?

The scenario is the paper's full mesh of 20 brokers at failure probability 0.06 with its timer
(`scenarios/dcrd.toml`), traced. A delivery is one message handed to one subscription; each needs
1.3 data transmissions or so, with their acknowledgements and timers. Rates are by CPU time in one
run, alternating, without the start-up (in which brokers work out their sending lists); beside SimPy
they stand in `simulate.py`. The long runs are the paper's two hours in the mesh, and on 160 brokers
of degree 8, each in a process of its own; they too are told in seconds of processor time.
"""

from __future__ import annotations

from typing import Any

from _report import Line, line, run
from _simulated import Most, rates, two_hours

SCENARIO = "dcrd.toml"
MESH: dict[str, Any] = {"links.failure_probability": 0.06, "run.seed": 1}
LARGE: dict[str, Any] = {
    "topology": {"kind": "random-degree", "brokers": 160, "degree": 8, "delay_ms": [10, 50]}
}
MESH_MOST, LARGE_MOST = Most(60.0, 500.0), Most(90.0, 2_000.0)


def measured(quick: bool) -> list[Line]:
    seconds, best = 600 if quick else 1_800, {"dcrd": 0.0, "d-tree": 0.0}
    for _ in range(2 if quick else 4):  # the least disturbed of each
        for strategy, rate in best.items():
            best[strategy] = max(rate, deliveries_per_s(strategy, seconds))
    dcrd, tree = best["dcrd"], best["d-tree"]
    part, long = 0.1 if quick else 1.0, MESH | {"broker.strategy": "dcrd"}
    return [
        line("dcrd beside d-tree", dcrd, "deliveries/s", tree, dcrd / tree),
        *two_hours("two hours, 20 brokers", SCENARIO, long, part, MESH_MOST),
        *two_hours("two hours, 160 brokers", SCENARIO, long | LARGE, part, LARGE_MOST),
    ]


def deliveries_per_s(strategy: str, seconds: float) -> float:
    return rates(SCENARIO, MESH | {"broker.strategy": strategy}, seconds)[1]


if __name__ == "__main__":
    run("dcrd", __doc__, measured)
