"""What became of every transmission of a message over a link? Attempts, with their outcome.

An acknowledgement names a transmission, not the attempt that it answers: it is counted for the last
one, since a broker that has its answer sends no more. Which copy it was meant for is not known if
there were several, so only that of a first attempt tells a round trip (Karn).
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
    is_first = answered & (F.col("attempt") == 1)
    return sent.join(answers, list(KEYS), "left").select(
        *forwarded.columns,
        F.when(answered, ACKNOWLEDGED).otherwise(UNACKNOWLEDGED).alias("outcome"),
        F.when(is_first, F.col("answer_s")).alias("round_trip_s"),
    )


def is_sound(column: str) -> Column:
    """A time that can have been measured."""
    return F.col(column).isNotNull() & F.col(column).between(0.0, 1e9)
