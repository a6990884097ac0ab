"""One simulated overlay whose brokers join one after the other, in a process of its own.

Its arguments are how many there are, how they look for links, and the seconds of processor time
after which it ends unfinished. Prints what it came to.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import pyarrow as pa

from tidings.core.trace import CARRIED_KINDS
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.world import simulate

MINUTE_S = 60.0
JOIN_EVERY_S, CONTACTS = 0.25, 1
QUIET_S = 60.0  # after the last has joined, and before anybody publishes
DRAIN_S = 5.0

brokers, linking, most_cpu_s = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
joined_at = (brokers - 1) * JOIN_EVERY_S
# Minutes are counted from the beginning, so the last whole one is of an overlay at rest.
start_s = (joined_at + QUIET_S) // MINUTE_S * MINUTE_S + 2 * MINUTE_S
changes = {
    "run": {"start_s": start_s, "seconds": 5.0, "drain_s": DRAIN_S},
    "topology": {"kind": "random-degree", "brokers": brokers, "degree": 5},
    "broker": {"linking": linking, "estimates": "measured", "strategy": "d-tree"},
    "dynamics": {"join_every_s": JOIN_EVERY_S, "contacts": CONTACTS},
    "workload.topics": 1,
    "workload.subscribe_probability": [1.0, 1.0],
}
resource.setrlimit(resource.RLIMIT_CPU, (most_cpu_s, most_cpu_s))
setup = set_up(load(Path(__file__).parent.parent / "scenarios" / "restless.toml", changes))

carried = {kind: [0, 0] for kind in CARRIED_KINDS}  # frames and bytes until the minute of rest
at_rest = {kind: [0, 0] for kind in CARRIED_KINDS}
changed_at, ends = 0.0, {"up": 0, "down": 0}
wanted = delivered = 0


def look(table: str, batch: pa.RecordBatch) -> None:
    global changed_at, wanted, delivered
    if table == "carried":
        for row in batch.to_pylist():
            if row["recorded_at"] <= start_s:
                resting = row["recorded_at"] > start_s - MINUTE_S
                sums = (at_rest if resting else carried)[row["kind"]]
                sums[0] += row["frames"]
                sums[1] += row["size_bytes"]
    elif table == "link_changed":
        changed_at = max(changed_at, max(batch.column("recorded_at").to_pylist()))
        for up in batch.column("up").to_pylist():
            ends["up" if up else "down"] += 1
    elif table == "published":
        wanted += batch.num_rows * (brokers - 1)  # all but the publisher's
    elif table == "delivered":
        delivered += sum(len(ids) for ids in batch.column("subscriptions").to_pylist())


marks = list[tuple[float, float]]()
end_at = start_s + 5.0 + DRAIN_S
started_at = time.process_time()


def mark(part: float) -> None:
    marks.append((part * end_at, time.process_time() - started_at))


simulate(setup, sink=look, progress=mark)


def cpu_s_at(instant: float) -> float:
    return min(((abs(at - instant), cpu_s) for at, cpu_s in marks))[1]


found = {
    "brokers": brokers,
    "joining_cpu_s": cpu_s_at(joined_at),
    "resting_cpu_s": cpu_s_at(start_s) - cpu_s_at(start_s - MINUTE_S),
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "settled_after_s": max(0.0, changed_at - joined_at),
    "links": (ends["up"] - ends["down"]) / 2,
    "ended_links": ends["down"] / 2,
    "carried": carried,
    "at_rest": at_rest,
    "wanted": wanted,
    "delivered": delivered,
}
print(json.dumps(found))
