"""How many hops a second does the simulator turn when the overlay grows?

Overlays of degree 8 and more and more brokers, otherwise as in `scenarios/dcrd.toml`: 10 topics,
each wanted by a fifth to three fifths of all brokers. Each run has a process of its own, whose peak
of memory is the run's. Hops are counted per second of processor time, apart from the start-up, in
which brokers get to know each other, and from the first messages of each topic, for which they
plan. Before each larger overlay one of 20 brokers is run anew, and the ratio is to that: so both
have met the same machine.

What is looked up grows with the logarithm of the size at best; the target is that, ln 20 / ln n.
What would take too long is left out, and named in a note: a size of which the one before says that
it would need more than `MOST_CPU_S` or `MOST_MB`, if both grow with the square of the size (each
broker hears of each broker, and keeps what it heard).
"""

from __future__ import annotations

from math import log
from statistics import median
from typing import Any, NamedTuple

from _report import Line, line, run
from _simulated import long_run

SMALLEST, SIZES, QUICK_SIZES = 20, (80, 160, 320, 1_000), (80,)
# Seconds of publishing times brokers: as many hops at each size, but not in less than LEAST_S.
BROKER_SECONDS = {"d-tree": 9_000, "dcrd": 7_000, "flooding": 1_400}
LEAST_S, QUICK_PART = 3.0, 0.4
START_S = 30.0  # of simulated time; sending lists have settled long before
FIRST_S = 2.0  # after it: every topic has been published on twice
MOST_CPU_S, MOST_MB = 150, 6_000  # of one run


class Found(NamedTuple):
    """What came of one run."""

    brokers: int
    hops_per_s: float
    start_cpu_s: float
    first_cpu_s: float  # of the first messages of each topic
    megabytes: float


def measured(quick: bool) -> list[Line]:
    sizes, part = (QUICK_SIZES, QUICK_PART) if quick else (SIZES, 1.0)
    return [entry for strategy in BROKER_SECONDS for entry in lines_of(strategy, sizes, part)]


def lines_of(strategy: str, sizes: tuple[int, ...], part: float) -> list[Line]:
    smallest, larger, left_out = list[Found](), list[tuple[Found, Found]](), list[int]()
    last: Found | None = None
    for size in sizes:
        beside = found_in(strategy, SMALLEST, part)
        assert beside, "20 brokers are simulated in seconds"
        smallest.append(beside)
        found = found_in(strategy, size, part) if affordable(last or beside, size) else None
        if found is None:
            left_out = [each for each in sizes if each >= size]
            break
        larger.append((found, beside))
        last = found
    rate = median(each.hops_per_s for each in smallest)
    lines = [told(strategy, smallest[0]._replace(hops_per_s=rate), rate)]
    lines += [told(strategy, found, beside.hops_per_s) for found, beside in larger]
    if left_out:
        most = f"{MOST_CPU_S} s or {MOST_MB:,} MB"
        what = ", ".join(f"{size:,}" for size in left_out)
        lines[-1]["notes"].append(f"left out, as a run would take more than {most}: {what} brokers")
    return lines


def affordable(last: Found, size: int) -> bool:
    """The smallest overlay says nothing of it: its cost is mostly the process's own."""
    times = size / last.brokers
    cheap = last.brokers == SMALLEST
    return cheap or (
        last.start_cpu_s * times**2 < MOST_CPU_S and last.megabytes * times**2 < MOST_MB
    )


def found_in(strategy: str, brokers: int, part: float) -> Found | None:
    seconds = FIRST_S + max(LEAST_S, BROKER_SECONDS[strategy] * part / brokers)
    changes = {
        "topology": {"kind": "random-degree", "brokers": brokers, "degree": 8},
        "broker.strategy": strategy,
        "run": {"start_s": START_S, "seconds": seconds, "drain_s": 2.0},
    }
    result = long_run("dcrd.toml", changes, MOST_CPU_S)
    return result and summary(brokers, seconds, result)


def summary(brokers: int, seconds: float, result: dict[str, Any]) -> Found:
    """Publishers speak at a steady pace, so each part of the time has its part of the hops."""
    marks = result["cpu_s_at"]
    start_cpu_s = max(cpu_s for at, cpu_s in marks if at <= START_S)
    warm_at, warm_cpu_s = next(mark for mark in marks if mark[0] >= START_S + FIRST_S)
    hops = result["hops"] * (START_S + seconds - warm_at) / seconds
    rate = hops / (result["cpu_s"] - warm_cpu_s)
    return Found(brokers, rate, start_cpu_s, warm_cpu_s - start_cpu_s, result["megabytes"])


def told(strategy: str, found: Found, smallest: float) -> Line:
    brokers, rate, start_cpu_s, first_cpu_s, megabytes = found
    logarithm = log(SMALLEST) / log(brokers)
    notes = [
        f"start-up {start_cpu_s:.1f} s, first messages {first_cpu_s:.1f} s of processor time; "
        f"{megabytes:,.0f} MB at most; the logarithm would give {logarithm:.2f}"
    ]
    more = {**found._asdict(), "logarithm": logarithm, "notes": notes}
    name = f"{strategy}, {brokers:,} brokers"
    return line(name, rate, "hops/s", smallest, rate / smallest, round(logarithm, 2), **more)


if __name__ == "__main__":
    run("growth", __doc__, measured)
