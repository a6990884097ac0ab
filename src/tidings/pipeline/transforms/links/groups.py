"""Which links fail together? Those whose outages coincide far more than chance would have it.

Two links (whichever end saw it) belong together if each had at least two outages, the time in which
both were down is at least half of the time in which either was, and at least twice what chance
would give links that fail independently as often. A link that belongs to one link of a group
belongs to the group.
"""

from __future__ import annotations

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from tidings.pipeline.transforms.links.samples import LINK

LEAST_OUTAGES = 2  # of each link: one coincidence is none
TOGETHER = 0.5  # of the time in which either is down
ABOVE_CHANCE = 2.0
BETWEEN = "\x1f"  # the names of two ends; no name contains it


def failing(histories: DataFrame) -> DataFrame:
    """Every outage of every link, as one end saw it: run, link, source, from_s, to_s."""
    outage = histories.select(
        "run", _link().alias("link"), "source", F.explode("outages").alias("outage")
    )
    return outage.select("run", "link", "source", "outage.from_s", "outage.to_s")


def together(histories: DataFrame, slice_s: float) -> DataFrame:
    """Pairs of links that fail together: link, other (each the two ends in one text)."""
    pieces = _pieces(failing(histories), slice_s)
    down = pieces.groupBy("link").agg(F.sum(F.col("to_s") - F.col("from_s")).alias("down_s"))
    seen = (  # by the end that saw more
        histories.groupBy(_link().alias("link"), "source")
        .agg(F.sum("watched_s").alias("watched_s"), F.sum(F.size("outages")).alias("count"))
        .groupBy("link")
        .agg(F.max("watched_s").alias("watched_s"), F.max("count").alias("count"))
        .where(F.col("count") >= LEAST_OUTAGES)
    )
    return _coinciding(pieces, down.join(seen, "link"))


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


def _coinciding(pieces: DataFrame, known: DataFrame) -> DataFrame:
    one, times = pieces.join(known.select("link"), "link"), ("link", "from_s", "to_s")
    other = one.select("run", "slice", *(F.col(n).alias(f"other_{n}") for n in times))
    both_s = F.least("to_s", "other_to_s") - F.greatest("from_s", "other_from_s")
    shared = (
        one.join(other, ["run", "slice"])
        .where((F.col("link") < F.col("other_link")) & (both_s > 0))
        .groupBy("link", F.col("other_link").alias("other"))
        .agg(F.sum(both_s).alias("both_s"))
    )
    others = known.select(F.col("link").alias("other"), F.col("down_s").alias("other_down_s"))
    either_s = F.col("down_s") + F.col("other_down_s") - F.col("both_s")
    chance_s = F.col("down_s") * F.col("other_down_s") / F.col("watched_s")
    joined = shared.join(known, "link").join(others, "other")
    much = F.col("both_s") >= TOGETHER * either_s
    return joined.where(much & (F.col("both_s") >= ABOVE_CHANCE * chance_s)).select("link", "other")


def numbered(pairs: pd.DataFrame) -> dict[tuple[str, str], int]:
    """The group of each link that is in one, numbered from 1 in the order of their first links."""
    names = sorted({*pairs["link"], *pairs["other"]})
    if not names:
        return {}
    place = {name: number for number, name in enumerate(names)}
    rows, columns = pairs["link"].map(place), pairs["other"].map(place)
    graph = coo_matrix(([1] * len(pairs), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(graph, directed=False)
    order = {label: number for number, label in enumerate(dict.fromkeys(labels.tolist()), 1)}
    ends = (tuple(name.split(BETWEEN)) for name in names)
    return {(a, b): order[label] for (a, b), label in zip(ends, labels.tolist(), strict=True)}
