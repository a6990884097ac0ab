"""What became of each message, for each who wanted it? One outcome per pair of the two.

The same meaning as `pipeline.outcomes`, which see; there the rows of one run are joined in memory,
here those of any number of runs on any number of machines.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.outcomes import (
    DROPPED,
    GRAIN_S,
    IN_FLIGHT,
    IN_TIME,
    LATE,
    OUTCOME_COLUMNS,
    By,
)
from tidings.pipeline.sources import Traces


def outcomes(traces: Traces, by: By = "clock") -> DataFrame:
    """One row per publication and interested subscription: `OUTCOME_COLUMNS`, not sorted."""
    joined = (
        pairs(traces["published"])
        .join(contracts(traces["subscribed"]), ["run", "subscription"], "left")
        .join(arrivals(traces["delivered"]), ["run", "message", "subscription"], "left")
        .join(drops(traces["dropped"]), ["run", "message", "subscriber_broker"], "left")
    )
    return judged(joined, by).select(*OUTCOME_COLUMNS)


def pairs(published: DataFrame) -> DataFrame:
    """One row per publication and subscription that its broker knew to be interested."""
    return published.withColumn("subscription", F.explode("interested")).select(
        "run",
        "message",
        "topic",
        "strategy",
        F.col("broker").alias("publisher_broker"),
        F.col("at").alias("published_at"),
        F.col("deadline_s").alias("publisher_deadline_s"),
        F.col("price").alias("publisher_price"),
        "subscription",
        F.substring_index("subscription", "/", 1).alias("subscriber_broker"),
    )


def contracts(subscribed: DataFrame) -> DataFrame:
    """What each subscription asks for; of one that was renewed, what it asked for last."""
    last = F.max(F.struct("at", "deadline_s", "price")).alias("last")
    return (
        subscribed.where("active")
        .groupBy("run", "subscription")
        .agg(last)
        .select("run", "subscription", "last.deadline_s", "last.price")
    )


def arrivals(delivered: DataFrame) -> DataFrame:
    """The first delivery of each message to each subscription."""
    return (
        delivered.withColumn("subscription", F.explode("subscriptions"))
        .groupBy("run", "message", "subscription")
        .agg(F.min(F.struct("at", "age_s", "hops")).alias("first"))
        .select(
            "run",
            "message",
            "subscription",
            F.col("first.at").alias("delivered_at"),
            "first.age_s",
            "first.hops",
        )
    )


def drops(dropped: DataFrame) -> DataFrame:
    """The first reason for which a copy for each broker was given up."""
    return (
        dropped.withColumn("subscriber_broker", F.explode("destinations"))
        .groupBy("run", "message", "subscriber_broker")
        .agg(F.min(F.struct("at", "reason")).alias("first"))
        .select("run", "message", "subscriber_broker", "first.reason")
    )


def judged(joined: DataFrame, by: By) -> DataFrame:
    """With deadline, price, delay, outcome and reason."""
    delay_s = F.col("age_s") if by == "age" else F.col("delivered_at") - F.col("published_at")
    price = F.col("publisher_price") * F.coalesce(F.col("price"), F.lit(1.0))
    reason = F.when(F.col("outcome") == DROPPED, F.col("reason"))
    return (
        joined.withColumn("deadline_s", F.least("publisher_deadline_s", "deadline_s"))
        .withColumn("price", price)
        .withColumn("delay_s", delay_s)
        .withColumn("outcome", _outcome())
        .withColumn("reason", reason)
    )


def _outcome() -> Column:
    arrived, in_time = (
        F.col("delay_s").isNotNull(),
        F.col("delay_s") <= F.col("deadline_s") + GRAIN_S,
    )
    return (
        F.when(arrived & in_time, IN_TIME)
        .when(arrived, LATE)
        .when(F.col("reason").isNotNull(), DROPPED)
        .otherwise(IN_FLIGHT)
    )
