"""How long does a frame take over each link, and how does that depend on the hour?

A delay is one-way: half of a round trip, less what the bytes of the message took where that is
known. Where it is not, because all messages were alike, probes alone tell the delay, if there are
enough. Links of which few round trips are known get no distribution.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.core.linkmodel import BYTES, HOURS
from tidings.pipeline.transforms.links.gamma import LEVELS, with_fits
from tidings.pipeline.transforms.links.samples import LINK
from tidings.pipeline.transforms.links.transfer import ALIKE, FEW

ENOUGH = 20  # round trips for a distribution
HOUR_S = 3600
FIT_TYPE = (
    "source string, target string, delay_shift_s double, delay_shape double, "
    "delay_scale_s double, delay_fit_distance double"
)


def delays(samples: DataFrame, transfer: DataFrame) -> DataFrame:
    """Every known one-way delay: run, source, target, sent_at, delay_s."""
    pace = F.coalesce(F.col("transfer_mean_s_per_kilobyte"), F.lit(0.0)) / BYTES
    bytes_s = F.coalesce(F.col("size_bytes"), F.lit(0)) * pace
    told = samples.where(F.col("round_trip_s").isNotNull())
    is_probe = F.col("size_bytes").isNull()
    probed = told.where(is_probe).groupBy(*LINK).agg(F.count("*").alias("probes"))
    blurred = F.col("transfer_reason").isin(FEW, ALIKE) & (F.col("probes") >= ENOUGH)
    return (
        told.join(F.broadcast(transfer), list(LINK), "left")
        .join(F.broadcast(probed), list(LINK), "left")
        .where(is_probe | ~F.coalesce(blurred, F.lit(False)))
        .withColumn("delay_s", F.greatest(F.lit(0.0), F.col("round_trip_s") - bytes_s) / 2)
        .select("run", *LINK, "sent_at", "delay_s")
    )


def delay_figures(delays: DataFrame) -> DataFrame:
    """One row per link: samples, mean, variance, the gamma, hourly factors, and reasons.

    Hours are those of `sent_at`, so of a live run's clock in UTC; 24 hours must have been seen.
    """
    plain = delays.groupBy(*LINK).agg(
        F.count("*").alias("samples"),
        F.avg("delay_s").alias("delay_mean_s"),
        F.coalesce(F.var_samp("delay_s"), F.lit(0.0)).alias("delay_variance_s2"),
        F.min("delay_s").alias("least_s"),
        F.percentile_approx("delay_s", list(LEVELS)).alias("quantiles_s"),
    )
    fits = plain.where(F.col("samples") >= ENOUGH).mapInPandas(with_fits, FIT_TYPE)
    few = F.col("samples") < ENOUGH
    return plain.join(fits, list(LINK), "left").select(
        *LINK,
        "samples",
        "delay_mean_s",
        "delay_variance_s2",
        "delay_shift_s",
        "delay_shape",
        "delay_scale_s",
        "delay_fit_distance",
        F.when(few, f"fewer than {ENOUGH} round trips: no distribution").alias("delay_reason"),
    )


def hourly(delays: DataFrame) -> DataFrame:
    """One row per link: what the mean delay of each hour of the day is of the mean over the hours,
    or the reason."""
    hour = F.floor(F.col("sent_at") / HOUR_S).cast("long") % HOURS
    by_hour = delays.groupBy(*LINK, hour.alias("hour")).agg(F.avg("delay_s").alias("mean_s"))
    seen, whole = F.col("seen"), F.col("seen") == HOURS
    mean_s = F.aggregate("means_s", F.lit(0.0), lambda sum_s, hour: sum_s + hour.mean_s) / HOURS
    factors = F.transform("means_s", lambda hour: hour.mean_s / F.col("mean_s"))
    reason = F.concat(seen.cast("string"), F.lit(f" of {HOURS} hours of the day were seen"))
    return (
        by_hour.groupBy(*LINK)
        .agg(
            F.count("*").alias("seen"),
            F.sort_array(F.collect_list(F.struct("hour", "mean_s"))).alias("means_s"),
        )
        .withColumn("mean_s", mean_s)
        .withColumn("whole", whole & (F.col("mean_s") > 0))
        .select(
            *LINK,
            F.when(F.col("whole"), factors).alias("hourly_factors"),
            F.when(~F.col("whole"), reason).alias("hourly_reason"),
        )
    )
