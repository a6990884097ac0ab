"""What did a delivered message cost? Frames and bytes on all links, split by what they were for.

A frame counts on every link it is put on. Data frames, repeats among them, are split into payload
and header; a header has no frame of its own. A frame that came in a second time and was discarded
was counted where it was sent; `discarded` counts such frames apart.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.traffic import CONTROL
from tidings.traces.headline import DATA_KINDS

PAYLOAD, HEADER, DISCARDED = "payload", "header", "discarded"
PARTS = (PAYLOAD, HEADER, *CONTROL)
COST_COLUMNS = (
    "run",
    "strategy",  # null where several share the run: links do not tell them apart
    "part",  # of `PARTS`
    "frames",
    "size_bytes",
    "frames_per_delivery",
    "bytes_per_delivery",
)


def cost(carried: DataFrame, strategies: DataFrame) -> DataFrame:
    """One row per run and part: `COST_COLUMNS`. `strategies` is `metrics.per_strategy`; a delivery
    is one message to one subscription, and without any there is no cost per delivery (null)."""
    one = F.when(F.count("*") == 1, F.min("strategy")).alias("strategy")
    runs = strategies.groupBy("run").agg(one, F.sum("delivered").alias("delivered"))
    deliveries = F.when(F.col("delivered") > 0, F.col("delivered"))
    return (
        _parts(carried)
        .groupBy("run", "part")
        .agg(F.sum("frames").alias("frames"), F.sum("size_bytes").alias("size_bytes"))
        .join(runs, "run")
        .withColumn("frames_per_delivery", F.col("frames") / deliveries)
        .withColumn("bytes_per_delivery", F.col("size_bytes") / deliveries)
        .select(*COST_COLUMNS)
    )


def discarded(carried: DataFrame) -> DataFrame:
    """One row per run: frames that came in a second time and were discarded."""
    frames = F.coalesce(F.sum(F.when(F.col("kind") == DISCARDED, F.col("frames"))), F.lit(0))
    return carried.groupBy("run").agg(frames.alias("discarded_frames"))


def _parts(carried: DataFrame) -> DataFrame:
    is_data, header_bytes = F.col("kind").isin(*DATA_KINDS), F.col("header_bytes")
    part = F.when(is_data, PAYLOAD).otherwise(F.col("kind"))
    size_bytes = F.col("size_bytes")
    payload_bytes = F.when(is_data, size_bytes - header_bytes).otherwise(size_bytes)
    frames = carried.where(F.col("kind") != DISCARDED).select(
        "run", part.alias("part"), "frames", payload_bytes.alias("size_bytes")
    )
    headers = carried.where(is_data).select(
        "run", F.lit(HEADER).alias("part"), F.lit(None).cast("long").alias("frames"), header_bytes
    )
    return frames.unionByName(headers.withColumnRenamed("header_bytes", "size_bytes"))
