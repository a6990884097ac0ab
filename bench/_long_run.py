"""One simulation in a process of its own, so that the peak of its memory is the run's.

Its arguments are a scenario, changes to it as JSON, and the seconds of processor time after which
it ends unfinished (0: none). Prints what it came to, and at which instants of simulated time how
many seconds of processor time had been spent.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.world import simulate

scenario, changes, most_cpu_s = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
if most_cpu_s:
    resource.setrlimit(resource.RLIMIT_CPU, (most_cpu_s, most_cpu_s))
setup = set_up(load(Path(scenario), changes))
run, marks = setup.scenario.run, list[tuple[float, float]]()
end_at = run.start_s + run.seconds + run.drain_s
started_at = time.process_time()
result = simulate(
    setup, progress=lambda part: marks.append((part * end_at, time.process_time() - started_at))
)
found = {
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "hops": result.hops,
    "publications": result.publications,
    "deliveries": result.deliveries,
    "cpu_s": time.process_time() - started_at,
    "cpu_s_at": marks,
}
print(json.dumps(found))
