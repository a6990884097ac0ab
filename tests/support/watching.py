"""Traces to be watched, and the windows that plain Python computes from them."""

import random
from collections import defaultdict
from collections.abc import Iterable
from math import inf
from pathlib import Path

import numpy as np
import pytest
from support.traces import a_wish, tables_of, write_tables

from tidings.core.trace import Delivered, Published, Row
from tidings.pipeline.transforms.windows import Timing, Window
from tidings.traces.outcomes import GRAIN_S

TIMING = Timing(window_s=5.0, watermark_s=3.0, wait_s=1.0)
SECONDS = 22
DEADLINES_S = {"b2/c:a": 0.05, "b3/c:a": 0.08, "b3/d:a": 0.08, "b2/c:b": inf}
INTERESTED = {"a": ("b2/c:a", "b3/c:a", "b3/d:a"), "b": ("b2/c:b",)}


def a_second(number: int) -> list[Row]:
    """What brokers record in one second: two topics, some losses, some deliveries twice."""
    drawn, rows = random.Random(number), list[Row]()
    for index in range(16):
        at, topic, message = number + index / 16, "ab"[index % 2], 100 * number + index
        takers, limit_s = INTERESTED[topic], 0.06 if index % 4 else inf
        rows.append(Published(at, "b1", message, topic, 10, limit_s, 1.0, "d-tree", ""))
        for broker in sorted({taker.partition("/")[0] for taker in takers}):
            own = tuple(taker for taker in takers if taker.startswith(broker))
            for _ in range(drawn.choice((0, 1, 1, 1, 1, 2))):
                age_s = drawn.gammavariate(2.0, 0.02)
                rows.append(Delivered(at + age_s, broker, message, age_s, 1, own))
    return rows


def write_segment(traces: Path, number: int, rows: Iterable[Row], run: str = "r") -> None:
    write_tables(traces, tables_of({run: rows}), f"{run}-b1-{number:06}")


def write_traces(folder: Path) -> Path:
    """The rows of all seconds, in segments as live brokers write them."""
    write_segment(folder, 0, [a_wish(name, limit) for name, limit in DEADLINES_S.items()])
    for number in range(SECONDS):
        write_segment(folder, number + 1, a_second(number))
    return folder


def by_hand(rows: Iterable[Row], timing: Timing = TIMING) -> dict[tuple[float, str, float], tuple]:
    """Per window, topic and deadline: expected, delivered, on time and the 95 % delay."""
    rows, first = list(rows), dict[tuple[int, str], float]()
    for row in rows:
        if isinstance(row, Delivered):
            for taker in row.subscriptions:
                key = (row.message, taker)
                first[key] = min(first.get(key, inf), row.recorded_at)
    delays = defaultdict[tuple[float, str, float], list[float]](list)
    for row in rows:
        if isinstance(row, Published):
            begin = row.recorded_at // timing.window_s * timing.window_s
            for taker in INTERESTED[row.topic]:
                limit_s = min(row.deadline_s, DEADLINES_S.get(taker, inf))
                delay_s = first.get((row.message, taker), inf) - row.recorded_at
                delays[begin, row.topic, limit_s].append(delay_s)
    return {key: figures(key[2], found) for key, found in delays.items()}


def figures(limit_s: float, delays_s: list[float]) -> tuple[int, int, int, float]:
    came = [delay_s for delay_s in delays_s if delay_s < inf]
    on_time = sum(delay_s <= limit_s + GRAIN_S for delay_s in came)
    return len(delays_s), len(came), on_time, pytest.approx(np.percentile(came, 95))


def as_found(windows: Iterable[Window]) -> dict[tuple[float, str, float], tuple]:
    found = {}
    for window in windows:
        key = (window.from_s, window.topic, window.deadline_s)
        assert key not in found, "a window was given out twice"
        found[key] = (window.expected, window.delivered, window.on_time, window.delay_p95_s)
        assert window.lost == window.expected - window.delivered
        assert window.loss_ratio == pytest.approx(window.lost / window.expected)
        assert window.on_time_ratio == pytest.approx(window.on_time / window.expected)
    return found


def all_rows() -> list[Row]:
    return [row for number in range(SECONDS) for row in a_second(number)]
