"""How many messages a second does the matching index match, beside asking each predicate in turn?

100,000 subscriptions `a1 < x and a2 < y` to one topic, thresholds uniform on (0, 10). Messages with
values uniform on (0, 10) match 25 % of them; others are drawn to match 0.1 %. The result of a match
is an array of subscription keys. The baseline evaluates the same parsed predicates one by one, in
the same run and process; for memory it is what the parsed predicates take themselves, for an
add in bulk what parsing costs, for a single change what loading the whole index again would cost.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from _report import Line, line, run

from tidings.core.matching import MatchingIndex, TopicPlan
from tidings.core.predicate import Predicate, parse
from tidings.core.rng import Draws

SUBSCRIPTIONS = 100_000
TOPIC = "bench/match"
TARGET_RATE = 2_000  # messages per second at 25 %
TARGET_RATIO = 100  # times the rate of asking each predicate in turn
FEW = 0.001

T = TypeVar("T")
Message = dict[str, float]


def measured(quick: bool) -> list[Line]:
    """All lines; a few of the messages are also matched naively."""
    messages, naive = (300, 2) if quick else (3_000, 10)
    chance = Draws(1).stream("bench-match")
    thresholds = chance.uniform(0, 10, (SUBSCRIPTIONS, 2))
    predicates, predicate_bytes = bytes_each(lambda: predicates_of(thresholds))
    index, index_bytes = bytes_each(lambda: loaded(predicates))
    plan = index.plan(TOPIC)
    quarter = messages_of(chance.uniform(0, 10, (messages, 2)))
    few = messages_of(10 * (1 - passing_ratios(chance.uniform(0, 1, messages))))
    at_quarter = rate_line("match at 25 %", plan, predicates, quarter, naive)
    ratio = at_quarter["ratio"]
    speed_up = line("speed-up at 25 %", ratio, "times", 1.0, ratio, TARGET_RATIO)
    memory_ratio = index_bytes / predicate_bytes
    return [
        at_quarter | {"target": TARGET_RATE, "met": at_quarter["value"] >= TARGET_RATE},
        speed_up,
        rate_line("match at 0.1 %", plan, predicates, few, naive),
        line("memory", index_bytes, "bytes/subscription", predicate_bytes, memory_ratio),
        *change_lines(predicates, changes=messages),
    ]


def predicates_of(thresholds: np.ndarray) -> list[Predicate]:
    return [parse(f"a1 < {x!r} and a2 < {y!r}") for x, y in thresholds.tolist()]


def messages_of(values: np.ndarray) -> list[Message]:
    return [{"a1": a1, "a2": a2} for a1, a2 in values.tolist()]


def passing_ratios(shares: np.ndarray) -> np.ndarray:
    """Pairs of passing ratios whose product is FEW, shared between the two in all ways."""
    return np.column_stack((FEW**shares, FEW ** (1 - shares)))


def loaded(predicates: Sequence[Predicate]) -> MatchingIndex:
    """An index of all predicates, settled in its tables."""
    index = MatchingIndex()
    for key, predicate in enumerate(predicates):
        index.add(key, TOPIC, predicate)
    index.plan(TOPIC)
    return index


def rate_line(
    name: str,
    plan: TopicPlan,
    predicates: Sequence[Predicate],
    messages: Sequence[Message],
    naive: int,
) -> Line:
    """Messages per second by the plan, and by asking each predicate in turn for a few of them."""
    for message in messages[: naive // 2]:
        assert plan.match(message).tolist() == asked_in_turn(predicates, message)
    rate = rate_of(plan.match, messages)
    naive_rate = rate_of(lambda message: asked_in_turn(predicates, message), messages[:naive])
    return line(name, rate, "messages/s", naive_rate, rate / naive_rate)


def asked_in_turn(predicates: Sequence[Predicate], message: Message) -> list[int]:
    return [key for key, predicate in enumerate(predicates) if predicate.matches(message)]


def rate_of(match: Callable[[Message], object], messages: Sequence[Message]) -> float:
    started_at = time.perf_counter()
    for message in messages:
        match(message)
    return len(messages) / (time.perf_counter() - started_at)


def change_lines(predicates: Sequence[Predicate], changes: int) -> list[Line]:
    """What a subscription costs when it comes in bulk, and between messages that must see it."""
    started_at = time.perf_counter()
    index = loaded(predicates)
    loading_s = time.perf_counter() - started_at

    def add_each() -> None:
        for key in range(changes):
            index.add(SUBSCRIPTIONS + key, TOPIC, predicates[key])
            index.plan(TOPIC)

    def remove_each() -> None:
        for key in range(changes):
            index.remove(key)
            index.plan(TOPIC)

    each_us = loading_s / SUBSCRIPTIONS * 1e6
    parse_us = (
        seconds(lambda: [parse(str(where)) for where in predicates[:changes]]) / changes * 1e6
    )
    lines = [line("add in bulk", each_us, "microseconds", parse_us, parse_us / each_us)]
    for name, change in (("add, then plan", add_each), ("remove, then plan", remove_each)):
        cost_us = seconds(change) / changes * 1e6
        rebuild_us = loading_s * 1e6
        lines.append(line(name, cost_us, "microseconds", rebuild_us, rebuild_us / cost_us))
    return lines


def seconds(work: Callable[[], object]) -> float:
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at


def bytes_each(make: Callable[[], T]) -> tuple[T, float]:
    """What was made, and the memory it keeps per subscription."""
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    size_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, size_bytes / SUBSCRIPTIONS


if __name__ == "__main__":
    run("match", __doc__, measured)
