"""How was everybody served? The same figures for any group of examined outcomes.

What was delivered, late or not, has a delay; what was not (dropped, or in flight when the trace
ended) is lost. A second delivery of a message to the same subscription is counted apart and never
as delivered; it comes after a crash, of durable messages.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.latency import latency_figures
from tidings.pipeline.transforms.metrics import DELAYS, PAIRS, delays, figures

SERVED = (
    *PAIRS,
    "delivery_ratio",
    "on_time_ratio",
    "loss_ratio",
    "second_deliveries",
    "clock_jumps",  # deliveries that the clocks put before their publication
    "earnings",
    "delay_mean_s",
    *DELAYS,
)


def per_topic(examined: DataFrame) -> DataFrame:
    """One row per run, strategy and topic: `SERVED`."""
    return _served(examined, "run", "strategy", "topic")


def per_window(examined: DataFrame, window_s: float) -> DataFrame:
    """One row per run, strategy and stretch of time: `SERVED` of what was published in it.

    `window_at` is its beginning, a multiple of its length on the publishing brokers' clocks.
    """
    begin = F.floor(F.col("published_at") / window_s) * window_s
    return _served(examined.withColumn("window_at", begin), "run", "strategy", "window_at")


def per_subscriber(examined: DataFrame) -> DataFrame:
    """One row per run and subscription: the tightest deadline that held for it, and `SERVED`."""
    keys = ("run", "subscription", "subscriber_broker")
    tightest = F.min("deadline_s").alias("deadline_s")
    grouped = examined.groupBy(*keys).agg(tightest, *figures(), *_extra_columns())
    return grouped.withColumns(_named_delays()).select(*keys, "deadline_s", *SERVED)


def extra_figures() -> dict[str, Column]:
    """Of a group of examined outcomes, what `metrics.figures` do not tell."""
    repeated = F.sum(F.greatest(F.col("copies") - 1, F.lit(0)))
    return {
        **latency_figures(),
        "second_deliveries": repeated,
        "clock_jumps": F.count_if("clock_back"),
    }


def _served(examined: DataFrame, *keys: str) -> DataFrame:
    grouped = examined.groupBy(*keys).agg(*figures(), *_extra_columns())
    return grouped.withColumns(_named_delays()).select(*keys, *SERVED)


def _named_delays() -> dict[str, Column]:
    return dict(zip(DELAYS, delays(), strict=True))


def _extra_columns() -> list[Column]:
    return [figure.alias(name) for name, figure in extra_figures().items()]
