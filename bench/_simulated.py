"""What benchmarks of the simulator share: SimPy's bare loop as a baseline, rates without start-up,
and long runs apart."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import simpy
from _report import Line, line

from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.result import Result
from tidings.sim.world import simulate

SCENARIOS = Path(__file__).parent.parent / "scenarios"
TIMEOUTS = 400_000
LONG_RUN = Path(__file__).parent / "_long_run.py"
Changes = dict[str, Any]


class Most(NamedTuple):
    """What a long run may take."""

    seconds: float
    mb: float


def timeouts_per_s() -> float:
    """What a bare SimPy loop of 20 processes turns, by CPU time."""

    def tick(environment: simpy.Environment, every_s: float):  # type: ignore[no-untyped-def]
        while True:
            yield environment.timeout(every_s)

    environment = simpy.Environment()
    for number in range(20):
        environment.process(tick(environment, 1 + number / 1000))
    started_at = time.process_time()
    environment.run(until=TIMEOUTS / 20)
    return TIMEOUTS / (time.process_time() - started_at)


def rates(scenario: str, changes: Changes, seconds: float) -> tuple[float, float]:
    """Hops and deliveries per second of CPU time, start-up taken off."""
    start_s, start = _timed(scenario, changes | {"run.seconds": 1.0})
    whole_s, whole = _timed(scenario, changes | {"run.seconds": seconds})
    took_s = whole_s - start_s
    return (whole.hops - start.hops) / took_s, (whole.deliveries - start.deliveries) / took_s


def _timed(scenario: str, changes: Changes) -> tuple[float, Result]:
    started_at = time.process_time()
    result = simulate(set_up(load(SCENARIOS / scenario, changes)))
    return time.process_time() - started_at, result


def long_run(scenario: str, changes: Changes, most_cpu_s: int = 0) -> dict[str, Any] | None:
    """Processor time, memory and counts of one simulation in a fresh process; nothing if it would
    have taken more time than it may."""
    arguments = [str(SCENARIOS / scenario), json.dumps(changes), str(most_cpu_s)]
    done = subprocess.run([sys.executable, str(LONG_RUN), *arguments], stdout=subprocess.PIPE)
    if done.returncode < 0 and most_cpu_s:  # a signal has ended it
        return None
    done.check_returncode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def two_hours(what: str, scenario: str, changes: Changes, part: float, most: Most) -> list[Line]:
    """What two simulated hours take of a processor, and of memory. A part of them is scaled up,
    without the start-up."""
    start_s = 0.0
    if part < 1.0:
        start_s = _finished(long_run(scenario, changes | {"run.seconds": 1.0}))["cpu_s"]
    found = _finished(long_run(scenario, changes | {"run.seconds": 7_200.0 * part}))
    took_s, megabytes = start_s + (found["cpu_s"] - start_s) / part, found["megabytes"]
    return [
        line(what, took_s, "s", most.seconds, most.seconds / took_s, 1.0),
        line(f"{what}: memory", megabytes, "MB", most.mb, most.mb / megabytes, 1.0),
    ]


def _finished(found: dict[str, Any] | None) -> dict[str, Any]:
    assert found, "it may take as long as it likes"
    return found
