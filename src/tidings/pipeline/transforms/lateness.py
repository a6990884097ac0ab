"""How late is late? The distribution of the delays of what missed its deadline (DCRD, IV.D.6).

Lateness is the actual delay over the deadline, so it begins at 1. Only what was delivered, but
late, counts: what was lost has no delay.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.distribution import shares_up_to
from tidings.traces.outcomes import LATE


def lateness_cdf(outcomes: DataFrame, ratios: Sequence[float]) -> DataFrame:
    """One row per run, strategy and ratio: the share of late deliveries that took at most so many
    times their deadline. A run in which nothing was late has no rows."""
    late = outcomes.where(F.col("outcome") == LATE)
    shares = shares_up_to(late, F.col("delay_s") / F.col("deadline_s"), ratios)
    return shares.withColumnsRenamed({"at": "ratio", "share": "lateness_cdf"})
