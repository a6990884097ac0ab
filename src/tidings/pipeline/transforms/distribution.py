"""How is a quantity distributed? Its cumulative distribution, read at fixed places.

Read at the same places in every run, distributions can be averaged over runs point by point.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def shares_up_to(rows: DataFrame, quantity: Column, places: Sequence[float]) -> DataFrame:
    """One row per run, strategy and place (`at`): the `share` of rows whose quantity is at most
    that. A run without rows has none here either."""
    shares = [
        F.struct(
            F.lit(float(place)).alias("at"),
            (F.count_if(quantity <= place) / F.count("*")).alias("share"),
        )
        for place in places
    ]
    return (
        rows.groupBy("run", "strategy")
        .agg(F.array(*shares).alias("shares"))
        .select("run", "strategy", F.explode("shares").alias("one"))
        .select("run", "strategy", "one.at", "one.share")
    )
