"""How did each strategy do? The figures that papers compare, as transforms over outcomes.

Delivery ratio, on-time ratio (DCRD's QoS delivery ratio) and packets per subscriber are those of
DCRD, section IV.C; earnings (Eq. 2) and the number of messages those of bounded delay; delays are
exact percentiles over what was delivered, late or not.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.traces.headline import DATA_KINDS, PERCENTILES
from tidings.traces.outcomes import DROPPED, IN_FLIGHT, IN_TIME, OUTCOME_COLUMNS

# The parameters of a sweep that its tables name by columns of their own.
SEED, STRATEGY = "run.seed", "broker.strategy"

PAIRS = ("expected", "delivered", "dropped", "in_flight")  # of a message and a subscription
RATIOS = ("delivery_ratio", "on_time_ratio", "packets_per_subscriber")
TRAFFIC = ("message_number", "packets_per_subscriber")
DELAYS = tuple(PERCENTILES)
AMOUNTS = ("earnings", "message_number")
FIGURES = RATIOS + AMOUNTS + DELAYS
DEVIATIONS = tuple(f"{name}_deviation" for name in FIGURES)
COUNTS = tuple(f"{name}_count" for name in FIGURES)

# What the metrics need of an outcome; the rest need not be kept.
NEEDED = tuple(name for name in OUTCOME_COLUMNS if name not in ("topic", "published_at", "hops"))


def per_strategy(
    outcomes: DataFrame,
    published: DataFrame,
    carried: DataFrame,
    more: Mapping[str, Column] | None = None,
) -> DataFrame:
    """One row per run and strategy, with `more` figures of its outcomes if that is wanted. Links do
    not tell strategies apart, so what they carried is null where several strategies share a run."""
    keys, beside = ["run", "strategy"], more or {}
    publications = published.groupBy(*keys).agg(F.count("*").alias("publications"))
    others = [figure.alias(name) for name, figure in beside.items()]
    return (
        publications.join(outcomes.groupBy(*keys).agg(*figures(), *others), keys, "left")
        .join(traffic(outcomes, publications, carried), "run", "left")
        .na.fill(0, [*PAIRS, "earnings"])
        .select(*keys, "publications", *PAIRS, *RATIOS, *AMOUNTS, *delays(), *beside)
    )


def traffic(outcomes: DataFrame, publications: DataFrame, carried: DataFrame) -> DataFrame:
    """One row per run with one strategy: data transmissions, repeats among them, and the same per
    publication and broker (other than the publisher's) with an interested subscription. See
    `headline.packets_per_subscriber`."""
    alone = publications.groupBy("run").agg(F.count("*").alias("strategies"))
    subscribers = (
        outcomes.where(F.col("publisher_broker") != F.col("subscriber_broker"))
        .select("run", "message", "subscriber_broker")
        .distinct()
        .groupBy("run")
        .agg(F.count("*").alias("subscribers"))
    )
    return (
        alone.where("strategies = 1")
        .join(message_number(carried), "run", "left")
        .join(subscribers, "run", "left")
        .na.fill(0, ["message_number"])
        .withColumn("packets_per_subscriber", F.col("message_number") / F.col("subscribers"))
        .select("run", *TRAFFIC)
    )


def message_number(carried: DataFrame) -> DataFrame:
    """One row per run that carried any: data transmissions, repeats among them."""
    return (
        carried.where(F.col("kind").isin(*DATA_KINDS))
        .groupBy("run")
        .agg(F.sum("frames").alias("message_number"))
    )


def drop_reasons(outcomes: DataFrame) -> DataFrame:
    """How many pairs ended dropped, per run, strategy and reason."""
    return (
        outcomes.where(F.col("outcome") == DROPPED)
        .groupBy("run", "strategy", "reason")
        .agg(F.count("*").alias("count"))
        .select("run", "strategy", "reason", "count")
    )


def over_seeds(strategies: DataFrame, points: DataFrame) -> DataFrame:
    """One row per study, strategy and setting (the swept parameters without the seed): the mean
    over seeds of each metric, its sample standard deviation as `<metric>_deviation`, and how many
    runs had it as `<metric>_count`: a run without deliveries has no delay."""
    keys = ["study", "strategy", "setting"]
    return (
        strategies.join(settings(points), "run")
        .groupBy(*keys)
        .agg(F.count_distinct("seed").alias("seeds"), *_over_runs())
        .select(*keys, "seeds", *FIGURES, *DEVIATIONS, *COUNTS)
    )


def paired(strategies: DataFrame, points: DataFrame) -> DataFrame:
    """One row per study, setting, metric and two strategies that ran on common seeds: the mean
    `difference` (strategy less other) of their runs on one seed, and its sample deviation.

    On one seed all strategies meet the same failures and arrivals, so differences spread less than
    the figures themselves. Two strategies that share a run have the same seed too.
    """
    figures = [
        F.struct(F.lit(n).alias("metric"), F.col(n).cast("double").alias("value")) for n in FIGURES
    ]
    each = (
        strategies.join(settings(points), "run")
        .withColumn("figure", F.explode(F.array(*figures)))
        .select("study", "setting", "seed", "strategy", "figure.metric", "figure.value")
    )
    others = each.withColumnsRenamed({"strategy": "other", "value": "other_value"})
    difference = F.col("value") - F.col("other_value")
    keys = ["study", "setting", "metric", "strategy", "other"]
    return (
        each.join(others, ["study", "setting", "seed", "metric"])
        .where(F.col("strategy") < F.col("other"))
        .withColumn("difference", difference)
        .where(F.col("difference").isNotNull())
        .groupBy(*keys)
        .agg(
            F.count("*").alias("pairs"),
            F.avg("difference").alias("mean"),
            F.stddev_samp("difference").alias("difference_deviation"),
        )
        .select(*keys, "pairs", F.col("mean").alias("difference"), "difference_deviation")
    )


def settings(points: DataFrame) -> DataFrame:
    """One row per study and run: its seed, and what else the grid set, as JSON."""
    parameters = F.from_json("parameters", "map<string,string>")
    named = F.map_filter(parameters, lambda name, _: ~name.isin(SEED, STRATEGY))
    return points.select(
        "study", F.col("point").alias("run"), "seed", F.to_json(named).alias("setting")
    )


def figures() -> list[Column]:
    """What a group of outcomes comes to; delays are null where nothing was delivered."""
    on_time = F.count_if(F.col("outcome") == IN_TIME)
    earned = F.sum(F.when(F.col("outcome") == IN_TIME, F.col("price")))
    return [
        F.count("*").alias("expected"),
        F.count("delay_s").alias("delivered"),
        F.count_if(F.col("outcome") == DROPPED).alias("dropped"),
        F.count_if(F.col("outcome") == IN_FLIGHT).alias("in_flight"),
        (F.count("delay_s") / F.count("*")).alias("delivery_ratio"),
        (on_time / F.count("*")).alias("on_time_ratio"),
        F.coalesce(earned, F.lit(0.0)).alias("earnings"),
        # one aggregate for all three: each keeps every distinct delay
        F.percentile("delay_s", list(PERCENTILES.values())).alias("delays"),
    ]


def delays() -> list[Column]:
    """`DELAYS`, of a group that `figures` were made of."""
    return [F.col("delays")[number].alias(name) for number, name in enumerate(DELAYS)]


def _over_runs() -> list[Column]:
    means = [F.avg(name).alias(name) for name in FIGURES]
    deviations = zip(map(F.stddev_samp, FIGURES), DEVIATIONS, strict=True)
    counts = zip(map(F.count, FIGURES), COUNTS, strict=True)
    return means + [column.alias(name) for column, name in (*deviations, *counts)]
