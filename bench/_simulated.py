"""What benchmarks of the simulator share: SimPy's bare loop as a baseline, and long runs apart.

A long run gets a process of its own, so that the peak of its memory is the run's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import simpy

TIMEOUTS = 400_000

_LONG_RUN = """
import json, resource, sys, time
from pathlib import Path
from tidings.scenarios.set_up import set_up
from tidings.scenarios.read import load
from tidings.sim.world import simulate
setup = set_up(load(Path(sys.argv[1]), json.loads(sys.argv[2])))
started = time.perf_counter()
result = simulate(setup)
seconds = time.perf_counter() - started
megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "megabytes": megabytes, "hops": result.hops,
                  "publications": result.publications, "deliveries": result.deliveries}))
"""


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


def long_run(scenario: Path, changes: dict[str, Any]) -> dict[str, float]:
    """Seconds, megabytes and counts of one simulation in a fresh process."""
    command = [sys.executable, "-c", _LONG_RUN, str(scenario), json.dumps(changes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = msgspec.json.decode(done.stdout)
    return found
