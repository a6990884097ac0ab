"""The metrics of `tidings analyse` once more, in plain Python over the rows of one run.

Written from docs/guide/traces.md, one publication and subscription at a time, without a join.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from math import floor, isnan, nan
from typing import Any, NamedTuple

from tidings.core.trace import (
    Acknowledged,
    Carried,
    Delivered,
    Dropped,
    Forwarded,
    LinkChanged,
    Probed,
    Published,
    Row,
    Subscribed,
)

GRAIN_S = 1e-6
PROBE_TIMEOUT_S, SETTLE_S = 1.0, 5.0
Figures = dict[str, float]
Link = tuple[str, str]


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
        for wanted in json.loads(row.attributes)
    ]


def _pair(rows: Sequence[Row], published: Published, subscription: str) -> Pair:
    wish = _wish(rows, published, subscription)
    arrivals = [
        (row.recorded_at, row.age_s)
        for row in rows
        if isinstance(row, Delivered)
        and row.message == published.message
        and subscription in row.subscriptions
    ]
    home = subscription.split("/")[0]
    drops = [
        (row.recorded_at, row.reason)
        for row in rows
        if isinstance(row, Dropped)
        and row.message == published.message
        and home in row.destinations
    ]
    delay_s, back = None, False
    if arrivals:
        delay_s = min(arrivals)[0] - published.recorded_at
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
        subscription.removesuffix(f":{wish.topic}") if wish else subscription.split(":")[0],
        deadline_s,
        published.price * (wish.price if wish else 1.0),
        outcome,
        min(drops)[1] if outcome == "dropped" else None,
        delay_s,
        len(arrivals),
        back,
    )


def _wish(rows: Sequence[Row], published: Published, subscription: str) -> Subscribed | None:
    """The last one that was there when the message was published, or else the first."""
    wishes = sorted(
        (r for r in rows if isinstance(r, Subscribed) and r.subscription == subscription),
        key=lambda row: (row.recorded_at, row.deadline_s, row.price),
    )
    wishes = [row for row in wishes if row.active]
    until_then = [row for row in wishes if row.recorded_at <= published.recorded_at]
    return (until_then[-1:] or wishes[:1] or [None])[0]


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


def loads(rows: Sequence[Row]) -> dict[Link, Figures]:
    """Frames and bytes by kind, of each direction of a link."""
    found: dict[Link, Figures] = {}
    for row in rows:
        if isinstance(row, Carried):
            link = found.setdefault((row.broker, row.neighbour), {})
            for name, amount in (("frames", row.frames), ("bytes", row.size_bytes)):
                link[f"{row.kind}_{name}"] = link.get(f"{row.kind}_{name}", 0) + amount
    return found


class Question(NamedTuple):
    """A probe, or an attempt to send a message."""

    sent_at: float
    answered: bool
    round_trip_s: float  # NaN: not told


def round_trips(rows: Sequence[Row]) -> dict[Link, Figures]:
    """What became of questions, of each direction of a link."""
    asking = (Probed, Forwarded, Acknowledged, LinkChanged)
    end_at = max((row.recorded_at for row in rows if isinstance(row, asking)), default=nan)
    found: dict[Link, list[Question]] = {}
    for row in rows:
        if isinstance(row, Probed | Forwarded):
            asked = _probe(row) if isinstance(row, Probed) else _attempt(rows, row)
            if asked.answered or asked.sent_at <= end_at - SETTLE_S:
                found.setdefault((row.broker, row.neighbour), []).append(asked)
    return {link: _trips(asked) for link, asked in found.items()}


def _probe(row: Probed) -> Question:
    answered = not isnan(row.round_trip_s)
    took_s = row.round_trip_s if answered else PROBE_TIMEOUT_S
    return Question(row.recorded_at - took_s, answered, row.round_trip_s)


def _attempt(rows: Sequence[Row], row: Forwarded) -> Question:
    key = (row.broker, row.neighbour, row.transmission)
    attempts = [
        other.attempt
        for other in rows
        if isinstance(other, Forwarded)
        and (other.broker, other.neighbour, other.transmission) == key
    ]
    answers = [
        other.round_trip_s
        for other in rows
        if isinstance(other, Acknowledged)
        and (other.broker, other.neighbour, other.transmission) == key
        and other.round_trip_s >= 0
    ]
    answered = bool(answers) and row.attempt == max(attempts)
    return Question(
        row.recorded_at, answered, min(answers) if answered and row.attempt == 1 else nan
    )


def _trips(asked: Sequence[Question]) -> Figures:
    told = sorted(one.round_trip_s for one in asked if not isnan(one.round_trip_s))
    return {
        "asked": len(asked),
        "unanswered_ratio": _over(sum(not one.answered for one in asked), len(asked)),
        "round_trip_mean_s": _over(sum(told), len(told)),
        "round_trip_p50_s": percentile(told, 0.50),
        "round_trip_p95_s": percentile(told, 0.95),
    }


def states(rows: Sequence[Row]) -> dict[Link, Figures]:
    """For how long links were up, and how often they went down."""
    end_at = max(
        (row.recorded_at for row in rows if isinstance(row, Carried | LinkChanged)), default=nan
    )
    found: dict[Link, list[tuple[float, bool]]] = {}
    for row in rows:
        if isinstance(row, LinkChanged):
            found.setdefault((row.broker, row.neighbour), []).append((row.recorded_at, row.up))
    return {link: _up(sorted(changes), end_at) for link, changes in found.items()}


def _up(changes: Sequence[tuple[float, bool]], end_at: float) -> Figures:
    ends = [*(at for at, _ in changes[1:]), end_at]
    up_s = sum(end - at for (at, up), end in zip(changes, ends, strict=True) if up)
    downs = sum(not up for _, up in changes)
    return {"up_ratio": _over(up_s, end_at - changes[0][0]), "downs": downs}


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
