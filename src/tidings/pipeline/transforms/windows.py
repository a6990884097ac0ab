"""Is every contract kept, window by window, while the overlay runs? Streams in, windows out.

Two streams are joined: what was published, for each interested subscription, and what was
delivered to it within `wait_s`. A publication leaves the join with its delivery, or without one
when the watermark says that none can come. Each is counted in the window in which it was published.
A window is complete when the watermark has passed its end and the wait; then it is given out, once.

What a subscription asks for is in other rows, which may be written a moment after a message that it
wants. So the stream only gathers delays, and a window is judged when it is complete.
"""

from __future__ import annotations

from math import isfinite

from msgspec import Struct
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.core.errors import ConfigError
from tidings.traces.outcomes import GRAIN_S, By

CLOCKS_DIFFER_S = 1.0  # by so much a delivery may seem to come before its publishing
LEAST_S, MOST_S = 0.1, 86_400.0
MICROSECONDS = 1_000_000

PAIR = ("run", "message", "subscription")
GROUP = ("run", "topic", "publisher_deadline_s", "subscription", "window")
CONTRACT = ("run", "window", "topic", "deadline_s")

DURATIONS = ("window_s", "watermark_s", "wait_s")  # fields of `Timing`, and options of a watch


class Timing(Struct, frozen=True):
    """How time is divided and how long is waited; a stored stream goes on under its own only."""

    window_s: float = 10.0
    watermark_s: float = 10.0  # rows that come so much later than others are passed over
    wait_s: float = 10.0  # what is not delivered by then is lost
    by: By = "clock"

    @property
    def closes_after_s(self) -> float:
        """From the publishing of a message, at most, until its window can be complete."""
        return self.window_s + self.watermark_s + self.wait_s + self.clocks_differ_s

    @property
    def clocks_differ_s(self) -> float:
        """At most, between a publisher's broker and a subscriber's. Who asks for ages does not
        trust the clocks; then the watermark bounds how far they may differ."""
        return self.watermark_s if self.by == "age" else CLOCKS_DIFFER_S


class Window(Struct, frozen=True):
    """How one contract was kept in one stretch of time."""

    run: str
    topic: str
    deadline_s: float  # JSON says null where there is none
    from_s: float  # by the brokers' clock, which live is seconds since 1970
    to_s: float
    expected: int
    delivered: int
    on_time: int
    lost: int
    loss_ratio: float
    on_time_ratio: float
    delay_p95_s: float | None  # null: nothing was delivered

    @property
    def id(self) -> str:
        return f"{self.run}/{self.from_s:.6f}/{self.deadline_s!r}/{self.topic}"

    def violates(self, target: float) -> bool:
        """Whether too little was on time. Without a deadline, on time is what came at all."""
        return self.on_time_ratio < target


def checked_timing(timing: Timing) -> Timing:
    """The timing, or a `ConfigError` that says which option is out of range."""
    for option in DURATIONS:
        value = getattr(timing, option)
        if not (isfinite(value) and LEAST_S <= value <= MOST_S):
            accepted = f"seconds, from {LEAST_S:g} to {MOST_S:g}"
            raise ConfigError("tidings watch", f"--{option.replace('_', '-')}", value, accepted)
    return timing


def gathered(rows: DataFrame, timing: Timing) -> DataFrame:
    """One row per complete window and `GROUP`: all its pairs, as `outcomes` (message, delay_s).

    `rows` are published and delivered ones in one stream, so that both sides of the join always
    see the same files.
    """
    same = [F.col("message") == F.col("taken_message"), F.col("taker") == F.col("taken_by")]
    told_s, since_s = F.col("told"), F.col("told") - F.col("published_at")
    return (
        _wanted(rows, timing)
        .join(_taken(rows, timing), [*same, *_in_reach(timing)], "left_outer")
        .withColumn("delay_s", told_s if timing.by == "age" else since_s)
        .select(*PAIR, "topic", "publisher_deadline_s", "published_time", "delay_s")
        .withColumn("window", F.window("published_time", _duration(timing.window_s)))
        .groupBy(*GROUP)
        .agg(F.collect_list(F.struct("message", "delay_s")).alias("outcomes"))
        .select(*GROUP, "outcomes")
    )


def judged(groups: DataFrame, wishes: DataFrame, timing: Timing) -> DataFrame:
    """One row per window, topic and deadline: the fields of `Window`.

    `wishes` says the deadline of each run's subscriptions. The first delivery of a message counts,
    and a message that the rows tell of twice counts once.
    """
    pairs = (
        groups.select(*GROUP, F.inline("outcomes"))
        .groupBy(*GROUP, "message")
        .agg(F.min("delay_s").alias("delay_s"))
        .join(F.broadcast(wishes), ["run", "subscription"], "left")
        .withColumn("deadline_s", F.least("publisher_deadline_s", "deadline_s"))
    )
    from_s = F.unix_micros("window.start") / MICROSECONDS - _shift_s(timing)
    return (
        pairs.groupBy(*CONTRACT)
        .agg(*_figures())
        .withColumn("lost", F.col("expected") - F.col("delivered"))
        .withColumn("loss_ratio", F.col("lost") / F.col("expected"))
        .withColumn("on_time_ratio", F.col("on_time") / F.col("expected"))
        .withColumn("from_s", from_s)
        .withColumn("to_s", from_s + timing.window_s)
        .select(*Window.__struct_fields__)
    )


def _wanted(rows: DataFrame, timing: Timing) -> DataFrame:
    return (
        rows.where(F.col("interested").isNotNull())
        .withColumn("published_time", _event_time(timing))
        .withWatermark("published_time", _duration(timing.watermark_s))
        .withColumn("subscription", F.explode("interested"))
        .select(
            *PAIR,
            _taker(),
            "topic",
            F.col("deadline_s").alias("publisher_deadline_s"),
            F.col("recorded_at").alias("published_at"),
            "published_time",
        )
    )


def _taken(rows: DataFrame, timing: Timing) -> DataFrame:
    """Under names of its own: Spark would take common ones for two readings of the stream."""
    told = F.col("age_s") if timing.by == "age" else F.col("recorded_at")
    return (
        rows.where(F.col("subscriptions").isNotNull())
        .withColumn("delivered_time", _event_time(timing))
        .withWatermark("delivered_time", _duration(timing.watermark_s))
        .withColumn("subscription", F.explode("subscriptions"))
        .select(
            F.col("message").alias("taken_message"),
            _taker().alias("taken_by"),
            told.alias("told"),
            "delivered_time",
        )
    )


def _in_reach(timing: Timing) -> list[Column]:
    """Whether a delivery is soon enough. By age the message tells that itself; the clocks then only
    bound how long Spark keeps a row, and are given room on both sides."""
    earliest = F.col("published_time") - _interval(timing.clocks_differ_s)
    by_age = timing.by == "age"
    reach_s = timing.wait_s + (timing.clocks_differ_s if by_age else 0.0)
    latest = F.col("published_time") + _interval(reach_s)
    in_reach = F.col("delivered_time").between(earliest, latest)
    return [in_reach, F.col("told") <= timing.wait_s] if by_age else [in_reach]


def _taker() -> Column:
    """Whose copy it is, in eight bytes instead of two texts, as Spark keeps every row for a while.
    Two takers of one message have the same number once in 10^19 times."""
    return F.xxhash64("run", "subscription").alias("taker")


def _figures() -> list[Column]:
    in_time = F.col("delay_s") <= F.col("deadline_s") + GRAIN_S
    return [
        F.count("*").alias("expected"),
        F.count("delay_s").alias("delivered"),
        F.count_if(in_time).alias("on_time"),
        F.percentile("delay_s", 0.95).alias("delay_p95_s"),
    ]


def _event_time(timing: Timing) -> Column:
    """An instant of a broker's clock. Before anything has come, Spark takes the beginning of 1970
    and all before it for late, and there the clock of a simulation begins; hence the shift."""
    return F.timestamp_micros(
        F.round((F.col("recorded_at") + _shift_s(timing)) * MICROSECONDS).cast("long")
    )


def _shift_s(timing: Timing) -> float:
    return timing.window_s  # a multiple of it leaves windows where they were


def _duration(seconds: float) -> str:
    return f"{round(seconds * MICROSECONDS)} microseconds"


def _interval(seconds: float) -> Column:
    return F.expr(f"INTERVAL {_duration(seconds)}")
