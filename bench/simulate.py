"""How many broker hops a second does the simulator turn, beside a bare SimPy timeout loop?

The scenario is DCRD's: a full mesh of 20 brokers, 10 topics at one message a second, with the
losses and failures of `scenarios/mesh20.toml`. A hop is one data transmission through the real
`Broker`: received, matched, routed, queued, sent, acknowledged, its timer armed and disarmed, and
traced to Arrow batches. `hops` are those of d-tree, `flooding` goes everywhere, and `dcrd`, with
its paper's timer (`scenarios/dcrd.toml`), is counted by deliveries, each of 1.3 hops or so.

The baseline is SimPy with 20 processes that do nothing but `yield env.timeout(...)`; all are timed
in the same run by CPU time, alternating, without the start-up (brokers getting to know each other).
The long run is two simulated hours, 72,000 publications, in seconds of processor time; its memory
is the peak of a fresh process.
Where the time goes is told of interpreted code alone: a profile of Python sees nothing inside what
was compiled.
"""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path
from typing import Any, NamedTuple

from _report import Line, line, run
from _simulated import SCENARIOS, Most, rates, timeouts_per_s, two_hours

import tidings
from tidings.native_code import COMPILED
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.world import simulate

MESH: dict[str, Any] = {"broker.strategy": "d-tree", "run.drain_s": 1.0}
FAR_RATIO = 0.5  # how far hops are from it is reported
MOST = Most(30.0, 500.0)
PROFILE_LINES = 12


class Load(NamedTuple):
    scenario: str
    changes: dict[str, Any]
    seconds: float
    unit: str  # of what is counted
    target_ratio: float


LOADS = {
    "hops": Load("mesh20.toml", MESH, 1_800, "hops/s", 0.2),
    "dcrd": Load(
        "dcrd.toml",
        {"broker.strategy": "dcrd", "links.failure_probability": 0.06},
        1_800,
        "deliveries/s",
        0.12,
    ),
    "flooding": Load("mesh20.toml", MESH | {"broker.strategy": "flooding"}, 120, "hops/s", 0.3),
}


def measured(quick: bool) -> list[Line]:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in LOADS}
    timeouts = list[float]()
    timeouts_per_s()  # what is done once per process is not a hop's cost
    rates("mesh20.toml", MESH, 2.0)
    for _ in range(2 if quick else 5):
        timeouts.append(timeouts_per_s())
        for name, its in LOADS.items():
            found[name].append(rates(its.scenario, its.changes, its.seconds / (3 if quick else 1)))
    lines = [told(name, max(found[name]), max(timeouts)) for name in LOADS]  # the least disturbed
    far = lines[0]["ratio"] / FAR_RATIO
    lines[0]["notes"].append(f"{far:.0%} of the way to {FAR_RATIO} of a bare timeout")
    if tidings.CODE != COMPILED:
        lines[0]["notes"] += profile()
    part, long = 0.1 if quick else 1.0, {"broker.strategy": "d-tree"}
    return [*lines, *two_hours("two hours", "mesh20.toml", long, part, MOST)]


def told(name: str, rate: tuple[float, float], timeouts: float) -> Line:
    its, (hops, deliveries) = LOADS[name], rate
    value = hops if its.unit == "hops/s" else deliveries
    notes = [
        f"{hops:,.0f} hops/s, {hops / timeouts:.3f}; {deliveries:,.0f} deliveries/s, "
        f"{deliveries / timeouts:.3f} of a bare timeout; code: {tidings.CODE}"
    ]
    return line(name, value, its.unit, timeouts, value / timeouts, its.target_ratio, notes=notes)


def profile() -> list[str]:
    """The functions that cost most by themselves, in parts of the whole."""
    setup = set_up(load(SCENARIOS / "mesh20.toml", MESH | {"run.seconds": 200.0}))
    profiler = cProfile.Profile()
    profiler.runcall(simulate, setup)
    stats = pstats.Stats(profiler)
    whole = stats.total_tt  # type: ignore[attr-defined]
    entries = sorted(stats.stats.items(), key=lambda item: -item[1][2])  # type: ignore[attr-defined]
    parts = [
        f"{own_s / whole:6.1%} {Path(file).name}:{name}"
        for (file, _, name), (_, _, own_s, _, _) in entries[:PROFILE_LINES]
    ]
    return ["where the time goes:", *parts]


if __name__ == "__main__":
    run("simulate", __doc__, measured)
