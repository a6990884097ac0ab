"""How long does a frame take over each link, and how does that depend on the hour?

One-way delays
--------------
A delay is half of a round trip, less what the bytes of the message took where that is known. Where
it is not known, because all messages were of one size, probes alone tell the delay, if there are
enough of them. A link with few round trips gets no distribution.

Hours of the day
----------------
Where hours are known to differ, a delay is its hour's factor times a level, and the distribution is
that of levels: what the hour explains is not counted as chance once more. A pattern is what comes
again. So each hour must be seen on two days or more, with enough round trips for a mean that is
more than chance.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.core.links.model import BYTES, HOURS
from tidings.pipeline.transforms.links.gamma import LEVELS, with_fits
from tidings.pipeline.transforms.links.samples import LINK
from tidings.pipeline.transforms.links.transfer import ALIKE, FEW

ENOUGH_ROUND_TRIPS = 20  # for a distribution, and for the mean of an hour
HOUR_S, DAY_S = 3600, 86_400
FIGURE_TYPE = (
    "source string, target string, samples long, delay_mean_s double, delay_variance_s2 double, "
    "delay_shift_s double, delay_shape double, delay_scale_s double, delay_fit_distance double"
)


def delays(samples: DataFrame, transfer: DataFrame) -> DataFrame:
    """Every known one-way delay: run, source, target, sent_at, delay_s."""
    pace = F.coalesce(F.col("transfer_mean_s_per_kilobyte"), F.lit(0.0)) / BYTES
    bytes_s = F.coalesce(F.col("size_bytes"), F.lit(0)) * pace
    answers = samples.where(F.col("round_trip_s").isNotNull())
    is_probe = F.col("size_bytes").isNull()
    probed = answers.where(is_probe).groupBy(*LINK).agg(F.count("*").alias("probes"))
    blurred = F.col("transfer_reason").isin(FEW, ALIKE) & (F.col("probes") >= ENOUGH_ROUND_TRIPS)
    # Probes are counted only for links with messages: a table has none of these, but many links.
    paced = transfer.join(probed, list(LINK), "left")
    return (
        answers.join(F.broadcast(paced), list(LINK), "left")
        .where(is_probe | ~F.coalesce(blurred, F.lit(False)))
        .withColumn("delay_s", F.greatest(F.lit(0.0), F.col("round_trip_s") - bytes_s) / 2)
        .select("run", *LINK, "sent_at", "delay_s")
    )


def with_levels(delays: DataFrame, hourly: DataFrame) -> DataFrame:
    """The delays with `level_s`: what they would have been in an hour like the mean of all."""
    factor = F.coalesce(F.get("hourly_factors", _hour()), F.lit(1.0))
    level_s = F.when(factor > 0, F.col("delay_s") / factor).otherwise(F.col("delay_s"))
    return (
        delays.join(F.broadcast(hourly.select(*LINK, "hourly_factors")), list(LINK), "left")
        .withColumn("level_s", level_s)
        .drop("hourly_factors")
    )


def delay_figures(levels: DataFrame) -> DataFrame:
    """One row per link: samples, mean and variance of delays, the gamma of levels, or the reason
    why there is none."""
    many = F.count("*") >= ENOUGH_ROUND_TRIPS
    plain = levels.groupBy(*LINK).agg(
        F.count("*").alias("samples"),
        F.avg("delay_s").alias("delay_mean_s"),
        F.coalesce(F.var_samp("delay_s"), F.lit(0.0)).alias("delay_variance_s2"),
        F.avg("level_s").alias("mean_s"),
        F.when(many, F.percentile_approx("level_s", list(LEVELS))).alias("quantiles_s"),
    )
    few = F.col("samples") < ENOUGH_ROUND_TRIPS
    reason = F.when(few, f"fewer than {ENOUGH_ROUND_TRIPS} round trips: no distribution").when(
        F.col("delay_shape").isNull(), "nearly all round trips are alike, few are not: no gamma"
    )
    return plain.mapInArrow(with_fits, FIGURE_TYPE).withColumn("delay_reason", reason)


def hourly(delays: DataFrame) -> DataFrame:
    """One row per link: what the mean delay of each hour of the day is of the mean over the hours,
    or the reason. Hours are those of `sent_at`, so of a live run's clock in UTC."""
    day = F.floor(F.col("sent_at") / DAY_S)
    by_hour = delays.groupBy(*LINK, _hour().alias("hour")).agg(
        F.avg("delay_s").alias("mean_s"),
        F.count("*").alias("round_trips"),
        (F.max(day) > F.min(day)).alias("again"),
    )
    mean_s = F.aggregate("means_s", F.lit(0.0), lambda sum_s, hour: sum_s + hour.mean_s) / HOURS
    factors = F.transform("means_s", lambda hour: hour.mean_s / F.col("mean_s"))
    return (
        by_hour.groupBy(*LINK)
        .agg(
            F.count("*").alias("seen"),
            F.min("round_trips").alias("fewest"),
            F.min("again").alias("again"),
            F.sort_array(F.collect_list(F.struct("hour", "mean_s"))).alias("means_s"),
        )
        .withColumn("mean_s", mean_s)
        .withColumn("hourly_reason", _patternless())
        .select(
            *LINK,
            F.when(F.col("hourly_reason").isNull(), factors).alias("hourly_factors"),
            "hourly_reason",
        )
    )


def _patternless() -> Column:
    """Why the hours of a link are not known, if so."""
    too_few = F.concat(
        F.col("seen").cast("string"), F.lit(f" of {HOURS} hours of the day were seen")
    )
    return (
        F.when(F.col("seen") < HOURS, too_few)
        .when(~F.col("again"), "an hour of the day was seen on one day only")
        .when(
            F.col("fewest") < ENOUGH_ROUND_TRIPS,
            f"an hour of the day has fewer than {ENOUGH_ROUND_TRIPS} round trips",
        )
        .when(F.col("mean_s") <= 0, "no delay is longer than zero")
    )


def _hour() -> Column:
    """Of the day."""
    return (F.floor(F.col("sent_at") / HOUR_S).cast("long") % HOURS).cast("int")
