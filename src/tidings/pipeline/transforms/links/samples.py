"""What was asked of every link, and what came back? One row per question, wherever it was asked.

A trace of level `hops` has two kinds: probes, and transmissions of messages with their
acknowledgements (`transforms.transmissions`). The answer to what was sent in the last moments of a
run may have come after its end; so such a question counts only if it was answered. Rows of a trace
that were read twice count once. A table of round trips has answers only.

A round trip that is negative (a clock that was set back), not finite, or of a host to itself, is no
sample.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tidings.broker.settings import Settings
from tidings.core.links.silences import SETTLE_S
from tidings.pipeline.trace_frames import Traces
from tidings.pipeline.transforms.transmissions import ACKNOWLEDGED, is_sound, transmissions

PROBE_TIMEOUT_S = Settings().probe_timeout_s  # how long brokers wait, unless told otherwise
LINK = ("source", "target")
LINK_TABLES = ("probed", "forwarded", "acknowledged", "link_changed")  # tell when links worked
SAMPLE_COLUMNS = (
    "run",
    "source",  # the end that asked
    "target",  # the end that answered
    "sent_at",
    "answered",
    "round_trip_s",  # null: no answer, or one that does not tell
    "size_bytes",  # of the message; null: of no message
)


def trace_samples(traces: Traces, probe_timeout_s: float = PROBE_TIMEOUT_S) -> DataFrame:
    """The questions of a trace: `SAMPLE_COLUMNS`."""
    samples = probes(traces["probed"], probe_timeout_s).unionByName(
        messages(traces["forwarded"], traces["acknowledged"])
    )
    end = ends(traces)
    settled = F.col("answered") | (F.col("sent_at") <= F.col("end_at") - SETTLE_S)
    return samples.join(F.broadcast(end), "run").where(settled).select(*SAMPLE_COLUMNS)


def probes(probed: DataFrame, timeout_s: float) -> DataFrame:
    """Each probe; a broker notes one without an answer when it has waited long enough."""
    answered = ~F.isnan("round_trip_s")
    took_s = F.when(answered, F.col("round_trip_s")).otherwise(timeout_s)
    return (
        probed.dropDuplicates(["run", "broker", "neighbour", "recorded_at"])
        .where(F.isnan("round_trip_s") | is_sound("round_trip_s"))
        .select(
            "run",
            F.col("broker").alias("source"),
            F.col("neighbour").alias("target"),
            (F.col("recorded_at") - took_s).alias("sent_at"),
            answered.alias("answered"),
            F.when(answered, F.col("round_trip_s")).alias("round_trip_s"),
            F.lit(None).cast("long").alias("size_bytes"),
        )
    )


def messages(forwarded: DataFrame, acknowledged: DataFrame) -> DataFrame:
    """Each attempt to send a message."""
    return transmissions(forwarded, acknowledged).select(
        "run",
        F.col("broker").alias("source"),
        F.col("neighbour").alias("target"),
        F.col("recorded_at").alias("sent_at"),
        (F.col("outcome") == ACKNOWLEDGED).alias("answered"),
        "round_trip_s",
        "size_bytes",
    )


def ends(traces: Traces) -> DataFrame:
    """When each run ended, as far as its links tell."""
    instants = [traces[table].select("run", "recorded_at") for table in LINK_TABLES]
    return (
        reduce(DataFrame.unionByName, instants)
        .groupBy("run")
        .agg(F.max("recorded_at").alias("end_at"))
    )


def changes(link_changed: DataFrame) -> DataFrame:
    """What brokers noticed of their links: run, source, target, at, up."""
    source, target = F.col("broker").alias("source"), F.col("neighbour").alias("target")
    return link_changed.dropDuplicates().select("run", source, target, "recorded_at", "up")


def table_samples(table: DataFrame, slice_s: float) -> DataFrame:
    """The answers of a table of round trips; slices without a row of a pair tell of no answer.
    Slices follow each other without a gap, whatever their numbers."""
    measured = named(table).where(is_sound("rtt_ms") & (F.col("source") != F.col("target")))
    place = F.row_number().over(Window.orderBy("slice"))
    slices = measured.select("slice").distinct().withColumn("place", place)
    return measured.join(F.broadcast(slices), "slice").select(
        F.lit("").alias("run"),
        *LINK,
        ((F.col("place") - 0.5) * slice_s).alias("sent_at"),
        F.lit(True).alias("answered"),
        (F.col("rtt_ms") / 1000).alias("round_trip_s"),
        F.lit(None).cast("long").alias("size_bytes"),
    )


def named(table: DataFrame) -> DataFrame:
    """Hosts by name: their own, or h07 for number 7 of up to a hundred, as in a topology."""
    if isinstance(table.schema["source"].dataType, StringType):
        return table
    most = table.agg(F.greatest(F.max("source"), F.max("target")).alias("most"))
    width = F.length(F.col("most").cast("string")).cast("int")
    numbered = table.crossJoin(F.broadcast(most.select(width.alias("width"))))
    hosts = {
        end: F.concat(F.lit("h"), F.lpad(F.col(end).cast("string"), F.col("width"), F.lit("0")))
        for end in LINK
    }
    return numbered.withColumns(hosts).drop("width")
