"""How many messages a second does one live broker deliver, and how soon, beside Mosquitto and NATS?

QoS 0, 100-byte payload, MQTT 3.1.1. Every message goes through `Broker.publish` and into the trace
at its default level, written to disk. All brokers run as processes on loopback and take the same
loads from the same generator, in turn, in a few rounds; machines are shared.

fan-out     as many as get through to 1, 10 and 100 subscribers; the best round counts
at a rate   to one subscriber: 99 % of all delays are less, of the rounds the median counts, and the
            processor time that a message took of the broker

Ratios are to Mosquitto. NATS's clients speak its own language, and where they share two cores with
the server, they and not the server may be what limits the rate. Peers come from the system
(Debian: `mosquitto`, `nats-server`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from _chains import Chain, bridged, leaves, ours
from _loads import fanned_out, loaded, medians, told
from _report import Line, line, run

FAN_OUTS = (1, 10, 100)
RATES_PER_S = (1_000, 10_000)
BROKERS = {"ours": partial(ours, "d-tree"), "mosquitto": bridged, "nats": leaves}
FAN_OUT_TARGETS = {1: 6.0, 10: 2.0, 100: 2.0}
P99_TARGETS = {10_000: 1.2}  # at most
Found = dict[str, list[dict[str, dict]]]  # by broker, for each round, by load


class Plan(NamedTuple):
    rounds: int = 5
    deliveries: int = 2_000_000
    seconds: int = 5  # of messages at each rate


QUICK = Plan(rounds=1, deliveries=200_000, seconds=2)


def measured(quick: bool) -> list[Line]:
    plan = QUICK if quick else Plan()
    found: Found = {name: [] for name in BROKERS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(plan.rounds):
            for name, started in BROKERS.items():
                with started(1, Path(folder)) as broker:
                    found[name].append(loads(broker, plan))
    lines = [entry for fan_out in FAN_OUTS for entry in fan_out_lines(fan_out, found)]
    return lines + [entry for rate in RATES_PER_S for entry in rate_lines(rate, found)]


def loads(broker: Chain, plan: Plan) -> dict[str, dict]:
    """What came of each load, by its name; quiet ones first."""
    found = {at(rate): loaded(broker, rate * plan.seconds, rate) for rate in RATES_PER_S}
    for fan_out in FAN_OUTS:
        found[to(fan_out)] = fanned_out(broker, fan_out, plan.deliveries // fan_out)
    return found


def at(rate_per_s: int) -> str:
    return f"{rate_per_s:,}/s"


def to(fan_out: int) -> str:
    return f"fan-out {fan_out}"


def fan_out_lines(fan_out: int, found: Found) -> Iterator[Line]:
    load = to(fan_out)
    best = {
        name: max((each[load] for each in rounds), key=lambda result: result["per_s"])
        for name, rounds in found.items()
    }
    theirs = best["mosquitto"]
    for name, suffix in (("ours", ""), ("nats", ", nats")):
        its, target = best[name], FAN_OUT_TARGETS[fan_out] if name == "ours" else None
        lost, cost_us = sum(each[load]["lost"] for each in found[name]), its["cpu_us"]
        cost = f"{cost_us:.2f} us of the broker per delivery, Mosquitto {theirs['cpu_us']:.2f}"
        notes = [cost, *([f"{lost:,} messages lost"] if lost else [])]
        rate, peer = its["per_s"], theirs["per_s"]
        more = {"notes": notes, "cpu_us": cost_us, "lost": lost}
        yield line(load + suffix, rate, "messages/s", peer, rate / peer, target, **more)


def rate_lines(rate_per_s: int, found: Found) -> Iterator[Line]:
    load, middle = at(rate_per_s), {name: medians(rounds) for name, rounds in found.items()}
    theirs = middle["mosquitto"][load]
    for name in found:
        its, suffix = middle[name][load], "" if name == "ours" else f", {name}"
        ratio = its["p99_ms"] / theirs["p99_ms"]
        target = P99_TARGETS.get(rate_per_s) if name == "ours" else None
        met = target is not None and ratio <= target
        more = {**its, "notes": [told(its)]}
        values = its["p99_ms"], "ms, 99 %", theirs["p99_ms"], ratio
        yield line(load + suffix, *values, target, met, **more)
        cost_us, peer_us = its["cpu_us"], theirs["cpu_us"]
        what = f"{load}{suffix}: processor"
        yield line(what, cost_us, "us/message", peer_us, cost_us / peer_us)


if __name__ == "__main__":
    run("mqtt", __doc__, measured)
