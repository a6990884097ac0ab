"""What do hops between brokers carry, lose and cost, beside Mosquitto's bridges and NATS's routes?

QoS 0, 100-byte payload; brokers are processes in a row on loopback, without emulated delay. All
take the same loads from the same generator, in turn, and in several rounds, of which the median
counts: machines are shared, and one slow second of one of them says nothing.

windowed    as many as get through while at most 4,000 are under way
burst       100,000 as fast as sockets take them; what never arrives is lost
at a rate   the delay from the publisher's socket to the subscriber's: half, 99 % and 99.9 % of all
            messages are quicker; what it cost the busiest broker's processor for each message

The first number of a line is that of hops, the ratio is to the bridge over as many of them. A
chain of NATS servers is made of leaf nodes, as one cluster never forwards twice. Peers come from
the system (Debian: `mosquitto`, `nats-server`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from _chains import Chain, bridged, leaves, ours
from _loads import WINDOW, loaded, medians, told
from _report import Line, line, run

STRATEGIES = ("d-tree", "dcrd", "qos-path")


class Plan(NamedTuple):
    hops: tuple[int, ...] = (1, 2, 3)
    rounds: int = 3
    messages: int = 100_000
    rates_per_s: tuple[int, ...] = (2_000, 5_000, 10_000, 20_000, 40_000)
    seconds: int = 3


QUICK = Plan(hops=(1,), rounds=1, messages=20_000, rates_per_s=(2_000, 20_000), seconds=1)


def measured(quick: bool) -> list[Line]:
    plan = QUICK if quick else Plan()
    kinds = {
        "bridge": bridged,
        "nats": leaves,
        **{name: partial(ours, name) for name in STRATEGIES},
    }
    lines = list[Line]()
    with tempfile.TemporaryDirectory() as name:
        for hops in plan.hops:
            found: dict[str, list[dict[str, dict]]] = {kind: [] for kind in kinds}
            for _ in range(plan.rounds):
                for kind, started in kinds.items():
                    with started(hops + 1, Path(name)) as chain:
                        found[kind].append(loads(chain, plan))
            results = {kind: medians(rounds) for kind, rounds in found.items()}
            for kind in kinds:
                lines += _lines(f"{hops}, {kind}", results[kind], results["bridge"])
    return lines


def loads(chain: Chain, plan: Plan) -> dict[str, dict]:
    """What came of each load, by its name."""
    found = {"windowed": loaded(chain, plan.messages, window=WINDOW)}
    found[f"burst of {plan.messages:,}"] = loaded(chain, plan.messages)
    for rate_per_s in plan.rates_per_s:
        found[f"{rate_per_s:,}/s"] = loaded(chain, rate_per_s * plan.seconds, rate_per_s)
    return found


def _lines(name: str, results: dict[str, dict], bridge: dict[str, dict]) -> Iterator[Line]:
    for load, found in results.items():
        figure, unit = ("p99_ms", "ms, 99 %") if load.endswith("/s") else ("per_s", "messages/s")
        value, baseline = found[figure], bridge[load][figure]
        more = {**found, "notes": [told(found)]}
        yield line(f"{name}, {load}", value, unit, baseline, value / baseline, **more)


if __name__ == "__main__":
    run("overlay", __doc__, measured)
