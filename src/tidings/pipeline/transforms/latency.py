"""How long did it take, and what was lost? Per run, subscription or stretch of time.

The latency of Harmony (section 3) is the mean delay of what was delivered, late or not; its loss
rate the share of what was owed that never arrived. A group to which nothing was delivered has no
delay (null), and a loss of 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.distribution import shares_up_to
from tidings.pipeline.transforms.metrics import DELAYS, delays, figures
from tidings.traces.outcomes import GRAIN_S

LATENCY = ("delay_mean_s", "loss_ratio")
SERVICE = (*LATENCY, "delivery_ratio", "on_time_ratio", *DELAYS)


def service(outcomes: DataFrame, *keys: str) -> DataFrame:
    """One row per group of outcomes: `SERVICE`."""
    latency = [figure.alias(name) for name, figure in latency_figures().items()]
    grouped = outcomes.groupBy(*keys).agg(*latency, *figures())
    return grouped.select(*keys, *LATENCY, "delivery_ratio", "on_time_ratio", *delays())


def latency_figures() -> dict[str, Column]:
    """`LATENCY` of a group of outcomes."""
    lost = F.count_if(F.col("delay_s").isNull()) / F.count("*")
    return {"delay_mean_s": F.avg("delay_s"), "loss_ratio": lost}


def latency_over_time(outcomes: DataFrame, bin_s: float) -> DataFrame:
    """One row per run, strategy and stretch of time, by the instant of publishing: `LATENCY`.

    `at` is the stretch's beginning; the first begins with the run's clock.
    """
    begin = F.floor(F.col("published_at") / bin_s) * bin_s
    keys = ("run", "strategy", "at")
    return service(outcomes.withColumn("at", begin), *keys).select(*keys, *LATENCY)


def delay_cdf(outcomes: DataFrame, delays_s: Sequence[float]) -> DataFrame:
    """One row per run, strategy and delay (`at`): the `share` of what was delivered that took at
    most so long."""
    delivered = outcomes.where(F.col("delay_s").isNotNull())
    # as with deadlines, the clock's grain does not make a delay longer than itself
    return shares_up_to(delivered, F.col("delay_s") - GRAIN_S, delays_s)
