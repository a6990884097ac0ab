"""What became of each message, for each who wanted it? Trace rows joined to outcomes, in Arrow.

There is one outcome per publication and subscription that wanted it (`audience`). A copy that is
dropped may have a sibling that arrives: so delivered wins over dropped, and dropped over in flight.
Where copies compete, the earliest row counts.

A subscription may be renewed with another deadline or price. For each message the wish counts that
was the last one when it was published; before the first wish, the first (rows of old versions).
`pipeline.transforms.outcomes` means exactly the same on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.traces.audience import with_audience

IN_TIME, LATE, DROPPED, IN_FLIGHT = "in-time", "late", "dropped", "in-flight"

# Instants of today's clock are exact to a quarter of a microsecond as float seconds; a message
# whose delay equals its deadline is in time.
GRAIN_S = 1e-6

By = Literal["clock", "age"]

OUTCOME_COLUMNS = (
    "run",
    "message",
    "topic",
    "strategy",
    "publisher_broker",
    "published_at",
    "subscription",
    "subscriber_broker",
    "deadline_s",
    "price",
    "outcome",
    "reason",
    "delay_s",
    "hops",
)


def outcomes(tables: Mapping[str, pa.Table], by: By = "clock") -> pa.Table:
    """One row per publication and interested subscription (`OUTCOME_COLUMNS`), sorted.

    `by` says what a delay is: the difference of two `clock`s, which must agree, or the `age` that
    the envelope carries, which needs no common clock.
    """
    joined = (
        _with_contracts(_pairs(tables), tables["subscribed"])
        .join(_arrivals(tables["delivered"]), ["run", "message", "subscription"])
        .join(_drops(tables["dropped"]), ["run", "message", "subscriber_broker"])
    )
    order = [(name, "ascending") for name in ("run", "published_at", "message", "subscription")]
    return _judged(joined, by).select(OUTCOME_COLUMNS).sort_by(order)


def _pairs(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row per publication and subscription that wanted it."""
    columns = {
        "broker": "publisher_broker",
        "recorded_at": "published_at",
        "deadline_s": "publisher_deadline_s",
        "price": "publisher_price",
    }
    wanted = with_audience(tables["published"], tables["subscribed"])
    wanted = wanted.select(["run", "message", "topic", "strategy", "interested", *columns])
    pairs = _exploded(wanted, "interested", "subscription")
    pairs = pairs.rename_columns([columns.get(name, name) for name in pairs.column_names])
    homes = pc.extract_regex(pairs["subscription"], r"^(?P<broker>[^/]*)")
    return pairs.append_column("subscriber_broker", pc.struct_field(homes, "broker"))


def _with_contracts(pairs: pa.Table, subscribed: pa.Table) -> pa.Table:
    """With what each subscription asked for when the message was published."""
    keys = ["run", "subscription"]
    order = [(name, "ascending") for name in (*keys, "recorded_at", "deadline_s", "price")]
    wishes = subscribed.filter(subscribed["active"]).sort_by(order)
    wishes = wishes.append_column("number", pa.array(np.arange(len(wishes))))
    firsts = wishes.group_by(keys, use_threads=False).aggregate([("number", "first")])
    pairs = pairs.join(firsts, keys)
    held = _holding(pairs, wishes.join(firsts, keys).sort_by("number"))
    for name in ("deadline_s", "price"):
        pairs = pairs.append_column(name, wishes[name].take(held))
    return pairs


def _holding(pairs: pa.Table, wishes: pa.Table) -> pa.Array:
    """For each pair the number of the last wish of its subscription until then, or else of the
    first; null if there is none. Wishes are sorted by subscription and instant, and so found by
    bisection, with instants replaced by their rank so that both make one number."""
    instants = np.sort(wishes["recorded_at"].to_numpy())

    def place(first: np.ndarray, at: pa.ChunkedArray) -> np.ndarray:
        ranks = np.searchsorted(instants, at.to_numpy(), "right")
        return np.asarray(first * (len(instants) + 1) + ranks)

    known = pairs["number_first"]
    first = pc.fill_null(known, 0).to_numpy()
    places = place(wishes["number_first"].to_numpy(), wishes["recorded_at"])
    last = np.searchsorted(places, place(first, pairs["published_at"]), "right") - 1
    return pa.array(np.maximum(last, first), mask=pc.is_null(known).to_numpy())


def _arrivals(delivered: pa.Table) -> pa.Table:
    """The first delivery of each message to each subscription."""
    each = _exploded(delivered.drop_columns(["world", "broker"]), "subscriptions", "subscription")
    keys = ["run", "message", "subscription"]
    first = _first_of(each, keys, ["recorded_at", "age_s", "hops"], "ascending")
    return first.rename_columns({"recorded_at": "delivered_at"})


def _drops(dropped: pa.Table) -> pa.Table:
    """The first reason for which a copy for each broker was given up."""
    each = _exploded(dropped.drop_columns(["world", "broker"]), "destinations", "subscriber_broker")
    keys = ["run", "message", "subscriber_broker"]
    return _first_of(each, keys, ["recorded_at", "reason"], "ascending").select([*keys, "reason"])


def _judged(joined: pa.Table, by: By) -> pa.Table:
    """With deadline, price, delay, outcome and reason."""
    deadline_s = pc.min_element_wise(joined["publisher_deadline_s"], joined["deadline_s"])
    price = pc.multiply(joined["publisher_price"], pc.fill_null(joined["price"], 1.0))
    by_clock = pc.subtract(joined["delivered_at"], joined["published_at"])
    delay_s = joined["age_s"] if by == "age" else by_clock
    in_time = pc.less_equal(delay_s, pc.add(deadline_s, GRAIN_S))
    undelivered = pc.if_else(pc.is_valid(joined["reason"]), DROPPED, IN_FLIGHT)
    outcome = pc.coalesce(pc.if_else(in_time, IN_TIME, LATE), undelivered)
    reason = pc.if_else(pc.equal(outcome, DROPPED), joined["reason"], pa.scalar(None, pa.string()))
    values = {
        "deadline_s": deadline_s,
        "price": price,
        "delay_s": delay_s,
        "outcome": outcome,
        "reason": reason,
    }
    return pa.table({name: joined[name] for name in joined.column_names} | values)


def _exploded(table: pa.Table, lists: str, item: str) -> pa.Table:
    """One row per item of a column of lists."""
    column = table[lists].combine_chunks()
    rows = table.drop_columns([lists]).take(pc.list_parent_indices(column))
    return rows.append_column(item, pc.list_flatten(column))


def _first_of(table: pa.Table, keys: list[str], values: list[str], order: str) -> pa.Table:
    """Per key the first row when sorted by the values, so that ties are decided too."""
    ordered = table.sort_by([(name, order) for name in values])
    firsts = ordered.group_by(keys, use_threads=False).aggregate([(v, "first") for v in values])
    return firsts.rename_columns({f"{value}_first": value for value in values})
