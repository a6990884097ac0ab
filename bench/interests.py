"""What does a subscription cost its own broker, and what the others?

So many subscriptions that ask for a thousand different filters, each under one of three contracts.
Beside them, the same number of which each has a filter of its own: so nothing can be aggregated,
and that is the baseline. Each broker has a process of its own, whose memory grows by what it holds;
frames go through the codec, as on a wire. Five brokers, of which the first is linked to the others,
are one process and have a fifth of the subscriptions each. They have settled when all know of all.
Publications are published one by one, on a thousand topics in turn: at the subscribers' own broker
all of them are delivered there, at another broker each is routed, sent and answered. Times are of
the processor.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from math import nan
from pathlib import Path

from _report import Line, line, run

PROGRAM = Path(__file__).parent / "_interests.py"
SIZES, QUICK_SIZES, LARGE = (10_000, 100_000), (10_000,), 1_000_000
FILTERS = 1_000
MOST_OF_FIVE = 100_000  # subscriptions of different filters that five brokers share: 10 KB each

Found = dict[str, float]


def measured(quick: bool, large: bool) -> list[Line]:
    sizes = (QUICK_SIZES if quick else SIZES) + ((LARGE,) if large else ())
    return [entry for count in sizes for entry in lines_of(count)]


def lines_of(count: int) -> list[Line]:
    alike, apart = alone(count, FILTERS), alone(count, count)
    shared = child("overlay", count, FILTERS)
    unshared = child("overlay", count, count) if count <= MOST_OF_FIVE else {}

    def told(name: str, unit: str, value: Callable[[dict[str, Found]], float]) -> Line:
        here, there = value(alike), value(apart)
        return line(f"{name}, {count:,}", here, unit, there, here / there)

    def told_of_five(name: str, unit: str, key: str, per: float) -> Line:
        here, there = shared[key] / per, unshared.get(key, nan) / per
        return line(f"{name}, {count:,}", here, unit, there, here / there)

    return [
        told("own broker", "B/subscription", lambda found: found["own"]["bytes"]),
        told("another broker", "B/subscription", lambda found: found["other"]["bytes"]),
        told("subscribing", "us each", lambda found: found["own"]["cpu_s"] / count * 1e6),
        told("hearing of it", "us each", lambda found: found["other"]["cpu_s"] / count * 1e6),
        told("published at home", "1/s", lambda found: found["own"]["publications_per_s"]),
        told("published elsewhere", "1/s", lambda found: found["other"]["publications_per_s"]),
        told_of_five("five brokers have settled", "s", "cpu_s", 1.0),
        told_of_five("five brokers hold", "B/subscription", "bytes", 1.0),
        told_of_five("told over the links", "B/subscription", "told_bytes", count),
    ]


def alone(count: int, filters: int) -> dict[str, Found]:
    """What the subscribers' own broker says of them, and another one to which it has told them."""
    with tempfile.TemporaryDirectory() as folder:
        frames = str(Path(folder) / "frames")
        return {what: child(what, count, filters, frames) for what in ("own", "other")}


def child(what: str, count: int, filters: int, *more: str) -> Found:
    command = [sys.executable, str(PROGRAM), what, str(count), str(filters), *more]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    found: Found = json.loads(told.stdout)
    return found


if __name__ == "__main__":
    run("interests", __doc__, measured, large="a million subscriptions, too: several minutes")
