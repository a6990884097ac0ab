"""How many broker hops a second does the simulator turn, beside a bare SimPy timeout loop?

The scenario is DCRD's: a full mesh of 20 brokers, d-tree, 10 topics at one message a second, with
the losses and failures of `scenarios/mesh20.toml`. A hop is one data transmission through the real
`Broker`: received, matched, routed, queued, sent, acknowledged, its timer armed and disarmed, and
traced to Arrow batches. The baseline is SimPy with 20 processes that do nothing but
`yield env.timeout(...)`; both are timed in the same run by CPU time, alternating. Start-up (brokers
getting to know each other) is timed apart. The long run is two simulated hours, 72,000
publications; its memory is the peak of a fresh process.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from pathlib import Path

from _report import Line, line, run
from _simulated import long_run, timeouts_per_s

from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.world import simulate

MESH20 = Path(__file__).parent.parent / "scenarios" / "mesh20.toml"
TARGET_RATIO = 0.2
FAR_RATIO = 0.5  # how far we are from it is reported
TARGET_SECONDS = 30.0
TARGET_MB = 500.0
PROFILE_LINES = 12


def measured(quick: bool) -> list[Line]:
    rates, timeouts = [], []
    timed(mesh(1))  # what is done once per process is not a hop's cost
    for _ in range(2 if quick else 5):
        timeouts.append(timeouts_per_s())
        rates.append(hops_per_s(600 if quick else 1_800))
    rate, baseline = max(rates), max(timeouts)  # the least disturbed of each
    far = f"{rate / baseline / FAR_RATIO:.0%} of the way to {FAR_RATIO} of a bare timeout"
    notes = [far, "where the time goes:", *profile(mesh(200))]
    hops = line("hops", rate, "hops/s", baseline, rate / baseline, TARGET_RATIO, notes=notes)
    return [hops, *two_hours(720 if quick else 7_200)]


def mesh(seconds: float) -> Scenario:
    return load(MESH20, {"run.seconds": seconds, "broker.strategy": "d-tree", "run.drain_s": 1.0})


def hops_per_s(seconds: float) -> float:
    """What our simulator turns, start-up taken off."""
    start_s, start = timed(mesh(1))
    whole_s, whole = timed(mesh(seconds))
    return (whole - start) / (whole_s - start_s)


def timed(scenario: Scenario) -> tuple[float, int]:
    started_at = time.process_time()
    hops = simulate(set_up(scenario)).hops
    return time.process_time() - started_at, hops


def profile(scenario: Scenario) -> list[str]:
    """The functions that cost most by themselves, in parts of the whole."""
    profiler = cProfile.Profile()
    profiler.runcall(simulate, set_up(scenario))
    stats = pstats.Stats(profiler)
    whole = stats.total_tt  # type: ignore[attr-defined]
    entries = sorted(stats.stats.items(), key=lambda item: -item[1][2])  # type: ignore[attr-defined]
    return [
        f"{own_s / whole:6.1%} {Path(file).name}:{name}"
        for (file, _, name), (_, _, own_s, _, _) in entries[:PROFILE_LINES]
    ]


def two_hours(seconds: float) -> list[Line]:
    found = long_run(MESH20, {"run.seconds": seconds, "broker.strategy": "d-tree"})
    took, megabytes = found["seconds"] * 7_200 / seconds, found["megabytes"]
    what = f"two hours ({found['publications']:,} publications)"
    return [
        line(what, took, "s", TARGET_SECONDS, TARGET_SECONDS / took, 1.0),
        line(f"{what}: memory", megabytes, "MB", TARGET_MB, TARGET_MB / megabytes, 1.0),
    ]


if __name__ == "__main__":
    run("simulate", __doc__, measured)
