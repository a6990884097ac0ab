"""How many decisions a second does a policy make, and how does that grow with the queue?

A decision is what a link asks for when it is free again: what has no chance is deleted, the best
leaves, and a new parcel arrives for each that went. Links are those of the bounded-delay paper (75
ms per kilobyte, deviation 20 ms, messages of 50 KB: one leaves every 3.75 s), destinations are one
to four links away, prices 1 to 3. Each destination has a deadline of its own, up to twice the time
in which the whole queue could be sent, so that at any instant some chances are falling. The queue
is filled at the start with parcels of all ages, and stays as long as it is. A queue of 10,000 is
not turned over once in a run, so what is measured there depends on how it was filled: where each
parcel has one destination, up to nine are deleted for each that is sent, with a hundred none.

The baseline is a plain heap of arrival numbers, in the same run. `valued` counts, in a run of its
own, how often a decision values a parcel or bounds its worth (a look at its groups); a rescan would
do so once for each parcel that waits. `fifo` and `rl` value nothing in this sense. Compiled code
cannot be counted in, so it is told of interpreted code alone. Growth is the time of a decision in a
queue of 10,000 over that in a queue of 100: a logarithm alone would give 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf
from unittest.mock import patch

import numpy as np
from _report import Line, line, run

import tidings
from tidings.core.contract import Destination, Group
from tidings.core.links.outlook import Outlook
from tidings.core.message import Message
from tidings.core.parcel import Parcel
from tidings.core.rng import Draws
from tidings.native_code import COMPILED
from tidings.scheduling import POLICIES
from tidings.scheduling.base import Queue
from tidings.scheduling.benefit.worth_over_time import WorthOverTime
from tidings.scheduling.options import BenefitOptions

LENGTHS = (10, 100, 1_000, 10_000)
DESTINATIONS = (1, 10, 100)
SIZE_BYTES = 50_000
S_PER_BYTE, DEVIATION_S_PER_BYTE = 75e-6, 20e-6
SENDING_S = SIZE_BYTES * S_PER_BYTE
TEMPLATES = 500  # different sets of deadlines and prices: parcels share them, to save memory
MEASURES = ("at", "most", "roughly_most")  # of a `WorthOverTime`: a look at a parcel's groups
TARGET_GROWTH = 2.0  # a logarithm alone; how many places in the order changed is not counted


class Beyond:
    """What lies beyond the link: brokers one to four links away, for ever."""

    version = 1
    s_per_byte = S_PER_BYTE

    def __init__(self) -> None:
        self._ways = [
            Outlook(n, 0.002 * n, n * S_PER_BYTE, n * DEVIATION_S_PER_BYTE**2) for n in range(1, 5)
        ]

    def outlook(self, parcel: Parcel, destination: str) -> Outlook:
        return self._ways[int(destination) % len(self._ways)]


class Load:
    """Parcels for a queue of one length, the same for each policy."""

    def __init__(self, length: int, destinations: int) -> None:
        self.length = length
        self._chance = Draws(1).stream("bench-schedule")
        self._longest_s = 2.0 * (length + 10) * SENDING_S
        self._owed = [self._template(destinations) for _ in range(TEMPLATES)]
        self._ids = count(1)

    def _template(self, destinations: int) -> tuple[Destination, ...]:
        deadlines_s = self._chance.uniform(2 * SENDING_S, self._longest_s, destinations)
        prices = self._chance.integers(1, 4, destinations)
        stated = zip(deadlines_s.tolist(), prices.tolist(), strict=True)
        groups = [(Group(deadline_s, 1, float(price)),) for deadline_s, price in stated]
        return tuple(Destination(str(i), inf, group) for i, group in enumerate(groups))

    def waiting(self) -> list[Parcel]:
        """As many as the queue is long, of all ages."""
        ages_s = np.sort(self._chance.uniform(0, self._longest_s / 4, self.length))[::-1]
        return [self.parcel(-age_s) for age_s in ages_s.tolist()]

    def parcel(self, born_at: float) -> Parcel:
        id = next(self._ids)
        owed = self._owed[id % TEMPLATES]
        message = Message(id, "bench", b"")
        return Parcel(message, born_at, inf, owed, ("b",), "d-tree", SIZE_BYTES)


class HeapFifo:
    """The baseline: a heap of arrival numbers."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, Parcel]] = []
        self._arrivals = 0

    def push(self, parcel: Parcel, now: float) -> None:
        self._arrivals += 1
        heappush(self._heap, (self._arrivals, parcel))

    def pop(self, now: float) -> Parcel | None:
        return heappop(self._heap)[1] if self._heap else None

    def doomed(self, now: float) -> Iterator[Parcel]:
        return iter(())

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Parcel]:
        return (parcel for _, parcel in self._heap)


def measured(quick: bool) -> list[Line]:
    lengths = (100, 1_000) if quick else LENGTHS
    destinations = (1, 10) if quick else DESTINATIONS
    decisions = 200 if quick else 1_000
    lines, costs_s = [], {}
    for owed in destinations:
        for length in lengths:
            fifo_s, _ = cost(HeapFifo, length, owed, decisions)
            for policy in POLICIES:
                cost_s, valued = cost(lambda p=policy: queue_of(p), length, owed, decisions)
                costs_s[policy, owed, length] = cost_s
                name = f"{policy}, {length:,} waiting, {owed} each"
                more = {}
                if tidings.CODE != COMPILED:
                    more = {"valued": valued, "notes": [f"valued per decision: {valued:.1f}"]}
                lines.append(
                    line(name, 1 / cost_s, "decisions/s", 1 / fifo_s, fifo_s / cost_s, **more)
                )
    return lines + growth_lines(costs_s, lengths[-1])


def growth_lines(costs_s: dict[tuple[str, int, int], float], longest: int) -> list[Line]:
    lines = []
    for (policy, owed, length), cost_s in costs_s.items():
        if length == 100:
            growth = costs_s[policy, owed, longest] / cost_s
            name = f"{policy}, growth from 100 to {longest:,}, {owed} each"
            met = growth <= TARGET_GROWTH
            lines.append(line(name, growth, "times", 1.0, growth, TARGET_GROWTH, met))
    return lines


def queue_of(policy: str) -> Queue:
    return POLICIES[policy](Beyond(), BenefitOptions())


def cost(
    make: Callable[[], Queue], length: int, destinations: int, decisions: int
) -> tuple[float, float]:
    """Seconds for a decision, and how many looks at a parcel it takes."""
    load, queue = Load(length, destinations), make()
    for parcel in load.waiting():
        queue.push(parcel, 0.0)
    instants = count(1)
    decide(queue, load, instants, max(50, length // 20))  # until the level has settled
    spent_s = decide(queue, load, instants, decisions)
    with Counted() as counted:
        decide(queue, load, instants, decisions // 2)
    return spent_s / decisions, counted.looks / (decisions // 2)


def decide(queue: Queue, load: Load, instants: Iterator[int], decisions: int) -> float:
    """Seconds of the processor that so many decisions take; making parcels does not count, but
    looking at the clock does, for the baseline too."""
    clock, spent_s = time.process_time, 0.0
    for _ in range(decisions):
        now = next(instants) * SENDING_S
        started_at = clock()
        for _ in queue.doomed(now):
            pass
        assert queue.pop(now) is not None
        spent_s += clock() - started_at
        arrivals = [load.parcel(now) for _ in range(load.length - len(queue))]
        started_at = clock()
        for parcel in arrivals:
            queue.push(parcel, now)
        spent_s += clock() - started_at
    return spent_s


class Counted:
    """Counts looks at parcels while it is open."""

    def __init__(self) -> None:
        self.looks = 0
        self._patches = [
            patch.object(WorthOverTime, name, self._counting(name)) for name in MEASURES
        ]

    def _counting(self, name: str) -> Callable[..., float]:
        measure = getattr(WorthOverTime, name)

        def counted(*arguments: object) -> float:
            self.looks += 1
            return measure(*arguments)

        return counted

    def __enter__(self) -> Counted:
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()


if __name__ == "__main__":
    run("schedule", __doc__, measured)
