"""The metrics of `tidings analyse` once more, in plain Python over the rows of one run.

Written from docs/guide/traces.md, one publication and subscription at a time, without a join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import floor, nan
from typing import Any, NamedTuple

from tidings.core.trace import Carried, Delivered, Dropped, Published, Row, Subscribed

GRAIN_S = 1e-6
Figures = dict[str, float]


class Pair(NamedTuple):
    """A publication and a subscription that it was owed to."""

    published: Published
    subscription: str
    subscriber: str
    deadline_s: float
    price: float
    outcome: str
    reason: str | None
    delay_s: float | None
    copies: int
    clock_back: bool


def pairs_of(rows: Sequence[Row]) -> list[Pair]:
    return [
        _pair(rows, row, wanted)
        for row in rows
        if isinstance(row, Published)
        for wanted in row.interested
    ]


def _pair(rows: Sequence[Row], published: Published, subscription: str) -> Pair:
    wishes = [
        row
        for row in rows
        if isinstance(row, Subscribed) and row.active and row.subscription == subscription
    ]
    wish = max(wishes, key=lambda row: (row.at, row.deadline_s, row.price), default=None)
    arrivals = [
        (row.at, row.age_s)
        for row in rows
        if isinstance(row, Delivered)
        and row.message == published.message
        and subscription in row.subscriptions
    ]
    home = subscription.split("/")[0]
    drops = [
        (row.at, row.reason)
        for row in rows
        if isinstance(row, Dropped)
        and row.message == published.message
        and home in row.destinations
    ]
    delay_s, back = None, False
    if arrivals:
        delay_s = min(arrivals)[0] - published.at
        back = delay_s < -GRAIN_S
        delay_s = min(arrivals)[1] if back else delay_s
    deadline_s = min(published.deadline_s, wish.deadline_s if wish else published.deadline_s)
    if delay_s is not None:
        outcome = "in-time" if delay_s <= deadline_s + GRAIN_S else "late"
    else:
        outcome = "dropped" if drops else "in-flight"
    return Pair(
        published,
        subscription,
        subscription[: -len(wish.topic) - 1] if wish else subscription.split(":")[0],
        deadline_s,
        published.price * (wish.price if wish else 1.0),
        outcome,
        min(drops)[1] if outcome == "dropped" else None,
        delay_s,
        len(arrivals),
        back,
    )


def grouped(pairs: Iterable[Pair], key: Callable[[Pair], Any]) -> dict[Any, list[Pair]]:
    groups: dict[Any, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return groups


def served(pairs: Sequence[Pair]) -> Figures:
    """What `transforms.served` calls `SERVED`."""
    delays = sorted(pair.delay_s for pair in pairs if pair.delay_s is not None)
    in_time = [pair for pair in pairs if pair.outcome == "in-time"]
    return {
        "expected": len(pairs),
        "delivered": len(delays),
        "dropped": sum(pair.outcome == "dropped" for pair in pairs),
        "in_flight": sum(pair.outcome == "in-flight" for pair in pairs),
        "delivery_ratio": _over(len(delays), len(pairs)),
        "on_time_ratio": _over(len(in_time), len(pairs)),
        "loss_ratio": _over(len(pairs) - len(delays), len(pairs)),
        "second_deliveries": sum(pair.copies - 1 for pair in pairs if pair.copies > 1),
        "clock_jumps": sum(pair.clock_back for pair in pairs),
        "earnings": sum(pair.price for pair in in_time),
        "delay_mean_s": _over(sum(delays), len(delays)),
        "delay_p50_s": percentile(delays, 0.50),
        "delay_p95_s": percentile(delays, 0.95),
        "delay_p99_s": percentile(delays, 0.99),
    }


def traffic(rows: Sequence[Row], pairs: Sequence[Pair]) -> Figures:
    """What links carried, as figures of a run with one strategy."""
    message_number = _frames(rows, "data") + _frames(rows, "repeat")
    remote = {
        (pair.published.message, pair.subscription.split("/")[0])
        for pair in pairs
        if pair.subscription.split("/")[0] != pair.published.broker
    }
    return {
        "message_number": message_number,
        "packets_per_subscriber": _over(message_number, len(remote)),
        "discarded_frames": _frames(rows, "discarded"),
    }


def loads(rows: Sequence[Row]) -> dict[tuple[str, str], Figures]:
    """Frames and bytes by kind, of each direction of a link."""
    found: dict[tuple[str, str], Figures] = {}
    for row in rows:
        if isinstance(row, Carried):
            link = found.setdefault((row.broker, row.neighbour), {})
            for name, amount in (("frames", row.frames), ("bytes", row.size_bytes)):
                link[f"{row.kind}_{name}"] = link.get(f"{row.kind}_{name}", 0) + amount
    return found


def costs(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """Frames and bytes by part; headers have no frames."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        if not isinstance(row, Carried) or row.kind == "discarded":
            continue
        is_data = row.kind in ("data", "repeat")
        part = "payload" if is_data else row.kind
        frames, size_bytes = found.get(part, (0, 0))
        added = row.size_bytes - row.header_bytes if is_data else row.size_bytes
        found[part] = frames + row.frames, size_bytes + added
        if is_data:
            found["header"] = 0, found.get("header", (0, 0))[1] + row.header_bytes
    return found


def reliability(
    pairs: Sequence[Pair], good: tuple[str, ...]
) -> dict[tuple[str, str | None, str | None], float]:
    """The four levels, by level, subscriber and topic, of these outcomes."""
    each = {
        key: _over(sum(pair.outcome in good for pair in group), len(group))
        for key, group in grouped(pairs, lambda p: (p.subscriber, p.published.topic)).items()
    }
    found: dict[tuple[str, str | None, str | None], float] = {
        ("subscriber-topic", s, t): value for (s, t), value in each.items()
    }
    subscribers, topics = {s for s, _ in each}, {t for _, t in each}
    of = {s: _mean([v for (name, _), v in each.items() if name == s]) for s in subscribers}
    found |= {("subscriber", s, None): value for s, value in of.items()}
    for topic in topics:
        found["topic", None, topic] = _mean([v for (_, t), v in each.items() if t == topic])
    return found | {("system", None, None): _mean(list(of.values()))}


def share_up_to(values: Sequence[float], place: float) -> float:
    return _over(sum(value <= place + GRAIN_S for value in values), len(values))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest, as far as the place is between them."""
    if not ordered:
        return nan
    place = share * (len(ordered) - 1)
    low = floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _frames(rows: Sequence[Row], kind: str) -> int:
    return sum(row.frames for row in rows if isinstance(row, Carried) and row.kind == kind)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _over(part: float, whole: float) -> float:
    return part / whole if whole else nan
