"""When did the overlay run? A run of live brokers may be stopped for the night and go on.

While all brokers are stopped none of them records anything. Such a silence says nothing about
links, though the broker that stopped last noted that all its links went down. What lies between two
silences is a spell, and each spell is watched by itself.

Which silence is a stop
-----------------------
One that is longer than several probes take, and many times longer than usual in this run: brokers
that do not probe record only what they have to carry. It looks the same where brokers went on but
all links were gone, with no client to record anything for; such a silence is not counted either.
Virtual time never stops: a simulated run is one spell.
"""

from __future__ import annotations

from functools import reduce
from math import inf

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.broker.settings import Settings
from tidings.core.trace import TABLES
from tidings.pipeline.trace_frames import Traces
from tidings.pipeline.transforms.links.samples import LINK_TABLES

SILENT_S = 6 * Settings().probe_every_s  # at least
UNUSUAL = 10.0  # times the median
MOMENT_S = 10.0  # rows that are so near each other are looked at together


def spells(traces: Traces) -> DataFrame:
    """Each spell of each run: run, spell, after_at (nothing before belongs to it), end_at (when it
    ended, as far as its links tell)."""
    tables = [_instants(traces[table], table in LINK_TABLES) for table in TABLES]
    moments = (
        reduce(DataFrame.unionByName, tables)
        .groupBy("run", F.floor(F.col("recorded_at") / MOMENT_S).alias("moment"))
        .agg(
            F.max("is_live").alias("is_live"),
            F.min("recorded_at").alias("first_at"),
            F.max("recorded_at").alias("last_at"),
            F.max("of_links_at").alias("of_links_at"),
        )
    )
    of_run = Window.partitionBy("run")
    so_far, in_order = of_run.orderBy("moment"), of_run.orderBy("spell")
    return (
        moments.withColumn("silent_s", F.col("first_at") - F.lag("last_at").over(so_far))
        .withColumn("stopped", _is_stop(F.median("silent_s").over(of_run)))
        .withColumn("spell", F.sum(F.col("stopped").cast("int")).over(so_far))
        .groupBy("run", "spell")
        .agg(F.max("last_at").alias("last_at"), F.max("of_links_at").alias("end_at"))
        .withColumn("after_at", F.lag("last_at", 1, -inf).over(in_order))
        .where(F.col("end_at").isNotNull())
        .select("run", "spell", "after_at", "end_at")
    )


def during(spells: DataFrame, rows: DataFrame, instant: str) -> DataFrame:
    """The rows with the `spell` in which that instant lies, and its `end_at`."""
    inside = (F.col(instant) > F.col("after_at")) & (F.col(instant) <= F.col("end_at"))
    apart = spells.toDF(*spells.columns)  # two frames of spells can be grouped together
    return rows.join(F.broadcast(apart), "run").where(inside).drop("after_at")


def _instants(table: DataFrame, of_links: bool) -> DataFrame:
    of_links_at = F.col("recorded_at") if of_links else F.lit(None).cast("double")
    is_live = F.col("world") == "live"
    return table.select(
        "run", is_live.alias("is_live"), "recorded_at", of_links_at.alias("of_links_at")
    )


def _is_stop(usual_s: Column) -> Column:
    """Whether the brokers were stopped before a moment; before the first there was no silence."""
    unusual = F.col("silent_s") > F.greatest(F.lit(SILENT_S), UNUSUAL * usual_s)
    return F.coalesce(F.col("is_live") & unusual, F.lit(False))
