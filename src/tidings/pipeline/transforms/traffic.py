"""What does it cost? Bytes that brokers put on links, split as in Harmony's section 3.4.

Control is all that is no data: acknowledgements, probes, what brokers and what routers tell each
other. Data, repeats among them, is headers and payload. A frame counts on every link it is put on.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.traces.headline import DATA_KINDS

RATES = ("control_bytes_per_s", "header_bytes_per_s", "payload_bytes_per_s")
CONTROL = ("ack", "probe", "control", "gossip")


def byte_rates(carried: DataFrame, published: DataFrame, lengths: DataFrame) -> DataFrame:
    """One row per run that has one strategy (links do not tell strategies apart): `RATES`, over
    `lengths`, which say for how many `seconds` each run published."""
    alone = (
        published.groupBy("run")
        .agg(F.min("strategy").alias("strategy"), F.count_distinct("strategy").alias("strategies"))
        .where("strategies = 1")
    )
    headers = F.col("header_bytes")
    totals = carried.groupBy("run").agg(
        _sum(F.col("size_bytes"), CONTROL).alias("control"),
        _sum(headers, DATA_KINDS).alias("header"),
        _sum(F.col("size_bytes") - headers, DATA_KINDS).alias("payload"),
    )
    rates = [
        (F.coalesce(kind, F.lit(0)) / F.col("seconds")).alias(name)
        for kind, name in zip(("control", "header", "payload"), RATES, strict=True)
    ]
    return alone.join(lengths, "run").join(totals, "run", "left").select("run", "strategy", *rates)


def _sum(amount: Column, kinds: tuple[str, ...]) -> Column:
    return F.sum(F.when(F.col("kind").isin(*kinds), amount))
