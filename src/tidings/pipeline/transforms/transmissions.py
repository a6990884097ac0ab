"""What became of every transmission of a message over a link? Attempts, with their outcome.

An acknowledgement names a transmission, not the attempt that it answers. It is counted for the last
attempt, since a broker that has its answer sends no more. If there were several attempts, nobody
knows which of them was answered; so only the answer to a single attempt tells a round trip (Karn).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

ACKNOWLEDGED, UNACKNOWLEDGED = "acknowledged", "unacknowledged"
KEYS = ("run", "broker", "neighbour", "transmission")
OUTCOMES = ("outcome", "round_trip_s")


def transmissions(forwarded: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """The rows of `forwarded`, each once, with `OUTCOMES`; `round_trip_s` is null if not known."""
    answers = (
        acknowledged.where(is_sound("round_trip_s"))
        .groupBy(*KEYS)
        .agg(F.min("round_trip_s").alias("answer_s"))
    )
    last = F.col("attempt") == F.max("attempt").over(Window.partitionBy(*KEYS))
    sent = forwarded.dropDuplicates([*KEYS, "attempt"]).withColumn("last", last)
    answered = F.col("answer_s").isNotNull() & F.col("last")
    is_only = answered & (F.col("attempt") == 1)
    return sent.join(answers, list(KEYS), "left").select(
        *forwarded.columns,
        F.when(answered, ACKNOWLEDGED).otherwise(UNACKNOWLEDGED).alias("outcome"),
        F.when(is_only, F.col("answer_s")).alias("round_trip_s"),
    )


def is_sound(column: str) -> Column:
    """A time that can have been measured."""
    return F.col(column).isNotNull() & F.col(column).between(0.0, 1e9)
