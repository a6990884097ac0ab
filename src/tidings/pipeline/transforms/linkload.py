"""What did each link carry, and how was it? One row per run and direction of a link.

The load comes from `carried`, at any level. At level `hops` probes and transmissions tell round
trips and how many went unanswered; as in `transforms.links.samples`, a question that was asked just
before the end counts only if it was answered, and an answer to a repeat tells no round trip.
`link_changed` tells when a link went up or down.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidings.core.trace import CARRIED_KINDS
from tidings.pipeline.trace_frames import Traces
from tidings.pipeline.transforms.links.samples import trace_samples
from tidings.pipeline.transforms.outcomes import GRAINS_PER_S

LOADS = (
    *(f"{kind}_frames" for kind in CARRIED_KINDS),
    *(f"{kind}_bytes" for kind in CARRIED_KINDS),
)
TRIPS = ("asked", "unanswered_ratio", "round_trip_mean_s", "round_trip_p50_s", "round_trip_p95_s")
STATES = ("up_ratio", "downs")
LINK_KEYS = ("run", "broker", "neighbour")
LINK_COLUMNS = (*LINK_KEYS, *LOADS, *TRIPS, *STATES)


def per_link(traces: Traces) -> DataFrame:
    """One row per run, broker and neighbour, of what the broker sent and saw: `LINK_COLUMNS`. What
    the trace's level does not tell is null."""
    carried, changed = traces["carried"], traces["link_changed"]
    return (
        load(carried)
        .join(round_trips(trace_samples(traces)), list(LINK_KEYS), "full")
        .join(states(changed, ends(carried, changed)), list(LINK_KEYS), "full")
        .na.fill(0, list(LOADS))
        .select(*LINK_COLUMNS)
    )


def load(carried: DataFrame) -> DataFrame:
    """Frames and bytes by kind; `discarded` is what came in from the neighbour a second time."""
    sums = [
        F.sum(F.when(F.col("kind") == kind, F.col(amount))).alias(f"{kind}_{unit}")
        for amount, unit in (("frames", "frames"), ("size_bytes", "bytes"))
        for kind in CARRIED_KINDS
    ]
    return carried.groupBy(*LINK_KEYS).agg(*sums).select(*LINK_KEYS, *LOADS)


def round_trips(samples: DataFrame) -> DataFrame:
    """Questions asked, the share that went unanswered, and what the answers took."""
    trip_s = F.rint(F.col("round_trip_s") * GRAINS_PER_S) / GRAINS_PER_S
    return (
        samples.withColumnsRenamed({"source": "broker", "target": "neighbour"})
        .groupBy(*LINK_KEYS)
        .agg(
            F.count("*").alias("asked"),
            (F.count_if(~F.col("answered")) / F.count("*")).alias("unanswered_ratio"),
            F.avg("round_trip_s").alias("round_trip_mean_s"),
            F.percentile(trip_s, [0.5, 0.95]).alias("trips"),
        )
        .withColumn("round_trip_p50_s", F.col("trips")[0])
        .withColumn("round_trip_p95_s", F.col("trips")[1])
        .select(*LINK_KEYS, *TRIPS)
    )


def states(changed: DataFrame, ends: DataFrame) -> DataFrame:
    """The share of the time, from the first change to the end of the run, that the link was up
    (null if that is no time at all), and how often it went down."""
    following = F.lead("recorded_at").over(
        Window.partitionBy(*LINK_KEYS).orderBy("recorded_at", "up")
    )
    lasted_s = F.coalesce(following, F.col("end_at")) - F.col("recorded_at")
    up_s, watched_s = F.sum(F.when(F.col("up"), F.col("lasted_s"))), F.sum("lasted_s")
    up_ratio = F.when(watched_s > 0, F.coalesce(up_s, F.lit(0.0)) / watched_s)
    return (
        changed.join(ends, "run")
        .withColumn("lasted_s", lasted_s)
        .groupBy(*LINK_KEYS)
        .agg(up_ratio.alias("up_ratio"), F.count_if(~F.col("up")).alias("downs"))
        .select(*LINK_KEYS, *STATES)
    )


def ends(carried: DataFrame, changed: DataFrame) -> DataFrame:
    """When each run was last heard of by its links."""
    instants = carried.select("run", "recorded_at").unionByName(
        changed.select("run", "recorded_at")
    )
    return instants.groupBy("run").agg(F.max("recorded_at").alias("end_at"))
