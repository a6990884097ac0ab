"""Which links fail together? Those whose outages coincide far more than chance would have it.

Two links (whichever end saw it) belong together if each had at least two outages, the time in which
both were down is at least half of the time in which either was, and at least twice what chance
would give links that fail independently as often. A link that belongs to one link of a group
belongs to the group.

Here outages become patterns: the pieces of time in which a link was down, and all links that were
down in exactly these. Many links of a large table share a pattern. `coincidence` compares patterns.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.links.samples import LINK

LEAST_OUTAGES = 2  # of each link: one coincidence is none
BETWEEN = "\x1f"  # the names of two ends; no name contains it


def failing(histories: DataFrame) -> DataFrame:
    """Every outage of every link, as one end saw it: run, link, source, from_s, to_s."""
    outage = histories.select(
        "run", _link().alias("link"), "source", F.explode("outages").alias("outage")
    )
    return outage.select("run", "link", "source", "outage.from_s", "outage.to_s")


def patterns(histories: DataFrame, slice_s: float) -> DataFrame:
    """When links were down that had several outages: pieces (run, slice, from_s, to_s), watched_s,
    and the links (each the two ends in one text)."""
    several = (  # by the end that saw more
        histories.groupBy(_link().alias("link"), "source")
        .agg(F.sum("watched_s").alias("watched_s"), F.sum(F.size("outages")).alias("count"))
        .groupBy("link")
        .agg(F.max("watched_s").alias("watched_s"), F.max("count").alias("count"))
        .where(F.col("count") >= LEAST_OUTAGES)
        .drop("count")
    )
    piece = F.struct("run", "slice", "from_s", "to_s")
    return (
        _pieces(failing(histories), slice_s)
        .groupBy("link")
        .agg(F.array_sort(F.collect_list(piece)).alias("pieces"))
        .join(several, "link")
        .groupBy("pieces", "watched_s")
        .agg(F.array_sort(F.collect_list("link")).alias("links"))
    )


def _link() -> Column:
    """The two ends in the order of their names, as one text."""
    return F.concat_ws(BETWEEN, F.least(*LINK), F.greatest(*LINK))


def _pieces(outages: DataFrame, slice_s: float) -> DataFrame:
    """Outages cut at the edges of slices, so that only those of one slice need be compared; what
    both ends of a link saw counts once, from the earliest to the latest."""
    first, last = F.floor(F.col("from_s") / slice_s), F.floor(F.col("to_s") / slice_s)
    cut = outages.withColumn("slice", F.explode(F.sequence(first, last)))
    start, end = F.col("slice") * slice_s, (F.col("slice") + 1) * slice_s
    return (
        cut.withColumn("from_s", F.greatest("from_s", start))
        .withColumn("to_s", F.least("to_s", end))
        .where(F.col("from_s") < F.col("to_s"))
        .groupBy("run", "slice", "link")
        .agg(F.min("from_s").alias("from_s"), F.max("to_s").alias("to_s"))
    )
