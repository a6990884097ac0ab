"""One scenario in both worlds, told in the same words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tidings.traces.headline import SubscriberSummary, outcomes, per_subscriber, read_tables

Copy = tuple[str, int, str]  # topic, the how manieth message on it, subscription


class Account(Struct, frozen=True):
    """What a world made of a scenario."""

    publications: dict[str, int]  # by topic
    wanted: set[Copy]
    delivered: set[Copy]
    delays_s: dict[str, list[float]]  # by subscription
    hops: dict[tuple[str, int], list[tuple[str, str]]]  # of each message: from, to, in its order
    subscribers: dict[str, SubscriberSummary]  # by subscription

    @property
    def expected(self) -> int:
        return len(self.wanted)

    @property
    def loss(self) -> float:
        return 1 - len(self.delivered) / self.expected

    @property
    def lost(self) -> list[Copy]:
        return sorted(self.wanted - self.delivered)

    def median_s(self, subscription: str) -> float:
        return float(np.median(self.delays_s[subscription]))

    def p95_s(self, subscription: str) -> float:
        return float(np.percentile(self.delays_s[subscription], 95))


def simulated(scenario: Path, folder: Path) -> Account:
    return _account("simulate", scenario, folder)


def live(scenario: Path, folder: Path) -> Account:
    return _account("up", scenario, folder)


def _account(command: str, scenario: Path, folder: Path) -> Account:
    arguments = [sys.executable, "-m", "tidings", command, str(scenario), "--json"]
    arguments += ["--traces", str(folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["publications"] > 0
    tables = read_tables(folder)
    got = {summary.subscription: summary for summary in per_subscriber(tables)}
    return account(outcomes(tables), tables["forwarded"], got)


def account(
    rows: pa.Table, forwarded: pa.Table, subscribers: dict[str, SubscriberSummary]
) -> Account:
    """The same account from the rows of either world; messages are named by their order."""
    ordered = sorted(rows.to_pylist(), key=lambda row: (row["topic"], row["published_at"]))
    numbers: dict[str, dict[int, int]] = defaultdict(dict)
    wanted, delivered, delays = set(), set(), defaultdict(list)
    for row in ordered:
        of_topic = numbers[row["topic"]]
        number = of_topic.setdefault(row["message"], len(of_topic))
        wanted.add(copy := (row["topic"], number, row["subscription"]))
        if row["outcome"] in ("in-time", "late"):
            delivered.add(copy)
            delays[row["subscription"]].append(row["delay_s"])
    counts = {topic: len(messages) for topic, messages in numbers.items()}
    names = {m: (topic, n) for topic, messages in numbers.items() for m, n in messages.items()}
    hops = _hops(forwarded, names)
    return Account(counts, wanted, delivered, dict(delays), hops, subscribers)


def _hops(
    forwarded: pa.Table, names: dict[int, tuple[str, int]]
) -> dict[tuple[str, int], list[tuple[str, str]]]:
    """Which links each message was put on, in the order of time (rows at level `hops` only)."""
    hops = defaultdict(list)
    for row in sorted(forwarded.to_pylist(), key=lambda row: row["recorded_at"]):
        hops[names[row["message"]]].append((row["broker"], row["neighbour"]))
    return dict(hops)
