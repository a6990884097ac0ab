"""What does it cost? Bytes that brokers put on links, split as in Harmony's section 3.4; and how
many messages brokers receive, as bounded delay counts them.

Control is all that is no data: acknowledgements, probes, what brokers and what routers tell each
other. Data, repeats among them, is headers and payload. A frame counts on every link it is put on.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.metrics import message_number
from tidings.traces.headline import DATA_KINDS

RATES = ("control_bytes_per_s", "header_bytes_per_s", "payload_bytes_per_s")
RECEPTIONS = ("messages_received",)
CONTROL = ("ack", "probe", "control", "gossip")


def byte_rates(carried: DataFrame, published: DataFrame, lengths: DataFrame) -> DataFrame:
    """One row per run that has one strategy (links do not tell strategies apart): `RATES`, over
    `lengths`, which say for how many `seconds` each run published."""
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
    runs = _with_one_strategy(published).join(lengths, "run").join(totals, "run", "left")
    return runs.select("run", "strategy", *rates)


def messages_received(carried: DataFrame, published: DataFrame, apart: DataFrame) -> DataFrame:
    """One row per run that has one strategy: `RECEPTIONS`, all that brokers receive from each other
    and from publishers (bounded delay, section 6.1).

    Of the runs in `apart` publishers stand at the far end of a link of their own: what they say to
    a broker crosses that link, and is among the data transmissions already.
    """
    received = F.coalesce("message_number", F.lit(0)) + F.coalesce("said", F.col("publications"))
    return (
        _with_one_strategy(published)
        .join(message_number(carried), "run", "left")
        .join(apart.select("run", F.lit(0).alias("said")), "run", "left")
        .select("run", "strategy", received.alias("messages_received"))
    )


def _with_one_strategy(published: DataFrame) -> DataFrame:
    """One row per run: its strategy, and how much was published."""
    strategies = F.count_distinct("strategy").alias("strategies")
    return (
        published.groupBy("run")
        .agg(F.min("strategy").alias("strategy"), strategies, F.count("*").alias("publications"))
        .where("strategies = 1")
    )


def _sum(amount: Column, kinds: tuple[str, ...]) -> Column:
    return F.sum(F.when(F.col("kind").isin(*kinds), amount))
