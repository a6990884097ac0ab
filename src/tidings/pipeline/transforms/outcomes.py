"""What became of each message, for each who wanted it? One outcome per pair of the two.

Outcomes mean the same as in `traces.outcomes`, where they are explained. There the rows of one run
are joined in memory, here those of any number of runs on any number of machines. `tidings analyse`
counts `examined` outcomes: they also say how often a message was delivered, and where a clock puts
a delivery before its publication they do not trust it.
"""

from __future__ import annotations

from math import inf

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.pipeline.trace_frames import Traces
from tidings.pipeline.transforms.audience import with_audience
from tidings.traces.outcomes import (
    DROPPED,
    GRAIN_S,
    IN_FLIGHT,
    IN_TIME,
    LATE,
    OUTCOME_COLUMNS,
    By,
)

EXAMINED_COLUMNS = (
    *OUTCOME_COLUMNS,
    "subscriber",  # the client, which may have several subscriptions
    "copies",  # deliveries; 0 if there was none
    "clock_back",  # whether the clocks put the delivery before the publication
)
GRAINS_PER_S = 1e6  # see GRAIN_S


def outcomes(traces: Traces, by: By = "clock") -> DataFrame:
    """One row per publication and interested subscription: `OUTCOME_COLUMNS`, not sorted."""
    delay_s = F.col("age_s") if by == "age" else _by_clock()
    return joined(traces).transform(judged, delay_s).select(*OUTCOME_COLUMNS)


def examined(traces: Traces, by: By = "clock") -> DataFrame:
    """The same with `EXAMINED_COLUMNS`; delays are rounded to the clocks' grain.

    Where the clocks contradict themselves the delay is the age that the message tells. Of rounded
    delays there are at most a million different ones in a second, which bounds the memory of exact
    percentiles.
    """
    age_s = F.greatest(F.col("age_s"), F.lit(0.0))
    back = F.coalesce(_by_clock() < -GRAIN_S, F.lit(False)) if by == "clock" else F.lit(False)
    delay_s = age_s if by == "age" else F.when(back, age_s).otherwise(_by_clock())
    rounded = F.rint(F.col("delay_s") * GRAINS_PER_S) / GRAINS_PER_S
    return (
        joined(traces)
        .withColumn("clock_back", back)
        .transform(judged, delay_s)
        .withColumn("delay_s", rounded)
        .withColumn("subscriber", _subscriber())
        .withColumn("copies", F.coalesce("copies", F.lit(0)))
        .select(*EXAMINED_COLUMNS)
    )


def joined(traces: Traces) -> DataFrame:
    """Each pair with what was asked for, and with its first delivery and its first drop."""
    return (
        pairs(with_audience(traces["published"], traces["subscribed"]))
        .transform(with_contract, contracts(traces["subscribed"]))
        .join(arrivals(traces["delivered"]), ["run", "message", "subscription"], "left")
        .join(drops(traces["dropped"]), ["run", "message", "subscriber_broker"], "left")
    )


def pairs(published: DataFrame) -> DataFrame:
    """One row per publication, as `with_audience` gives them, and subscription that wanted it."""
    return published.withColumn("subscription", F.explode("interested")).select(
        "run",
        "message",
        "topic",
        "strategy",
        F.col("broker").alias("publisher_broker"),
        F.col("recorded_at").alias("published_at"),
        F.col("deadline_s").alias("publisher_deadline_s"),
        F.col("price").alias("publisher_price"),
        "subscription",
        F.substring_index("subscription", "/", 1).alias("subscriber_broker"),
    )


def contracts(subscribed: DataFrame) -> DataFrame:
    """What each subscription asked for, and when: a wish holds from its instant to that of the next
    one, the first also before it. Of two at one instant the one that is last in order holds."""
    wishes = Window.partitionBy("run", "subscription").orderBy("recorded_at", "deadline_s", "price")
    is_first = F.lag("recorded_at").over(wishes).isNull()
    return subscribed.where("active").select(
        F.col("run").alias("wish_run"),
        F.col("subscription").alias("wish"),
        F.when(is_first, -inf).otherwise(F.col("recorded_at")).alias("holds_from"),
        F.coalesce(F.lead("recorded_at").over(wishes), F.lit(inf)).alias("holds_until"),
        "deadline_s",
        "price",
        F.col("topic").alias("topic_filter"),
    )


def with_contract(pairs: DataFrame, contracts: DataFrame) -> DataFrame:
    """Each pair with the wish that held when it was published."""
    same = (F.col("run") == F.col("wish_run")) & (F.col("subscription") == F.col("wish"))
    since = F.col("published_at") >= F.col("holds_from")
    held = since & (F.col("published_at") < F.col("holds_until"))
    return pairs.join(contracts, same & held, "left").drop("wish_run", "wish")


def arrivals(delivered: DataFrame) -> DataFrame:
    """The first delivery of each message to each subscription, and how many there were."""
    return (
        delivered.withColumn("subscription", F.explode("subscriptions"))
        .groupBy("run", "message", "subscription")
        .agg(
            F.min(F.struct("recorded_at", "age_s", "hops")).alias("first"),
            F.count("*").alias("copies"),
        )
        .select(
            "run",
            "message",
            "subscription",
            F.col("first.recorded_at").alias("delivered_at"),
            "first.age_s",
            "first.hops",
            "copies",
        )
    )


def drops(dropped: DataFrame) -> DataFrame:
    """The first reason for which a copy for each broker was given up."""
    return (
        dropped.withColumn("subscriber_broker", F.explode("destinations"))
        .groupBy("run", "message", "subscriber_broker")
        .agg(F.min(F.struct("recorded_at", "reason")).alias("first"))
        .select("run", "message", "subscriber_broker", "first.reason")
    )


def judged(joined: DataFrame, delay_s: Column) -> DataFrame:
    """With deadline, price, delay, outcome and reason."""
    price = F.col("publisher_price") * F.coalesce(F.col("price"), F.lit(1.0))
    reason = F.when(F.col("outcome") == DROPPED, F.col("reason"))
    return (
        joined.withColumn("delay_s", delay_s)
        .withColumn("deadline_s", F.least("publisher_deadline_s", "deadline_s"))
        .withColumn("price", price)
        .withColumn("outcome", _outcome())
        .withColumn("reason", reason)
    )


def _by_clock() -> Column:
    return F.col("delivered_at") - F.col("published_at")


def _subscriber() -> Column:
    """The client of a subscription, `<broker>/<client>:<filter>`, in which each may have colons; a
    broker's log has no filter in its name."""
    ending = F.concat(F.lit(":"), F.col("topic_filter"))
    client = F.substring("subscription", F.lit(1), F.length("subscription") - F.length(ending))
    return (
        F.when(F.endswith("subscription", ending), client)
        .when(F.col("topic_filter").isNull(), F.substring_index("subscription", ":", 1))
        .otherwise(F.col("subscription"))
    )


def _outcome() -> Column:
    arrived = F.col("delay_s").isNotNull()
    in_time = F.col("delay_s") <= F.col("deadline_s") + GRAIN_S
    return (
        F.when(arrived & in_time, IN_TIME)
        .when(arrived, LATE)
        .when(F.col("reason").isNotNull(), DROPPED)
        .otherwise(IN_FLIGHT)
    )
