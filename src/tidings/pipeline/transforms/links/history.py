"""When did each link work? Its outages, and what was lost outside of them.

The rule is that of `core.links.silences`: several unanswered questions in a row are an outage. In a
table of round trips one slice without a measurement is an outage already. A link that went down
just before the run ended was taken down with the run. A run that was stopped and went on is watched
in spells (`spells`), each with a beginning and an end of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.core.intervals import Interval
from tidings.core.links.silences import SETTLE_S, Flags, Instants, outages, reported, within
from tidings.pipeline.transforms.links.samples import LINK
from tidings.pipeline.transforms.links.spells import during

HISTORY_TYPE = (
    "run string, source string, target string, watched_s double, sent long, answered long, "
    "outages array<struct<from_s: double, to_s: double>>"
)
COLUMNS = ["run", *LINK, "watched_s", "sent", "answered", "outages"]


def trace_histories(samples: DataFrame, changes: DataFrame, spells: DataFrame) -> DataFrame:
    """One row per run, link and spell (`HISTORY_TYPE`); `sent` and `answered` tell of the time
    outside of outages."""
    keys = ["run", *LINK, "spell"]
    settled = F.col("answered") | (F.col("sent_at") <= F.col("end_at") - SETTLE_S)
    asked = during(spells, samples.select("run", *LINK, "sent_at", "answered"), "sent_at")
    noticed = during(spells, changes, "at")
    grouped = asked.where(settled).groupBy(*keys).cogroup(noticed.groupBy(*keys))
    return grouped.applyInPandas(_of_trace(), HISTORY_TYPE)


def table_histories(samples: DataFrame, slice_s: float) -> DataFrame:
    """The same of a table, in all of whose slices every link was asked."""
    whole = samples.agg(F.max("sent_at").alias("last_at"))
    asked = samples.select("run", *LINK, "sent_at").crossJoin(F.broadcast(whole))
    return asked.groupBy("run", *LINK).applyInPandas(_of_table(slice_s), HISTORY_TYPE)


def _of_trace() -> Callable[[tuple[Any, ...], pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    def of_trace(key: tuple[Any, ...], asked: pd.DataFrame, changed: pd.DataFrame) -> pd.DataFrame:
        if asked.empty:  # noticed, but never asked: nothing is known of it
            return pd.DataFrame(columns=COLUMNS)
        asked = asked.sort_values("sent_at")
        sent_at, answered = asked["sent_at"].to_numpy(), asked["answered"].to_numpy(bool)
        watched = (float(sent_at[0]), float(asked["end_at"].iloc[0]))
        down = reported(changed["at"], changed["up"], watched)
        found = outages(sent_at, answered, watched, down)
        return _history(key[:3], sent_at, answered, watched, found)

    return of_trace


def _of_table(slice_s: float) -> Callable[[tuple[Any, ...], pd.DataFrame], pd.DataFrame]:
    def of_table(key: tuple[Any, ...], measured: pd.DataFrame) -> pd.DataFrame:
        count = int(measured["last_at"].iloc[0] / slice_s + 0.5)
        answered = np.zeros(count, bool)
        answered[(measured["sent_at"].to_numpy() / slice_s).astype(int)] = True
        sent_at: Instants = (np.arange(count, dtype=np.float64) + 0.5) * slice_s
        watched = (0.0, count * slice_s)
        found = outages(sent_at, answered, watched, unanswered=1)
        return _history(key, sent_at, answered, watched, found)

    return of_table


def _history(
    key: tuple[Any, ...],
    sent_at: Instants,
    answered: Flags,
    watched: Interval,
    found: list[Interval],
) -> pd.DataFrame:
    in_order = ~within(sent_at, found)
    counts = (int(in_order.sum()), int((in_order & answered).sum()))
    row = (*key, watched[1] - watched[0], *counts)
    listed = [{"from_s": start, "to_s": end} for start, end in found]
    return pd.DataFrame([(*row, listed)], columns=COLUMNS)


def reliability(histories: DataFrame, lossy: bool) -> DataFrame:
    """One row per link: delivery ratio, availability, outages, their mean length, with reasons.

    A question crosses the link twice, so one way has the square root of its ratio. `lossy`: whether
    the input tells losses from outages.
    """
    down_s = F.aggregate("outages", F.lit(0.0), lambda sum_s, o: sum_s + o.to_s - o.from_s)
    found = histories.groupBy(*LINK).agg(
        F.sum("watched_s").alias("watched_s"),
        F.sum(down_s).alias("down_s"),
        F.sum(F.size("outages")).cast("long").alias("seen"),
        F.sum("sent").alias("sent"),
        F.sum("answered").alias("answered"),
    )
    counts, watched = F.lit(lossy) & (F.col("sent") > 0), F.col("watched_s") > 0
    in_order = F.greatest(F.lit(0.0), 1 - F.col("down_s") / F.col("watched_s"))
    unlossy = "each slice has one measurement, so a loss looks like an outage"
    silent = "nothing was sent while the link was in order" if lossy else unlossy
    return found.select(
        *LINK,
        F.when(counts, F.sqrt(F.col("answered") / F.col("sent"))).alias("delivery_ratio"),
        F.when(~counts, silent).alias("delivery_reason"),
        F.when(watched, in_order).alias("availability"),
        F.when(~watched, "the link was seen at one instant only").alias("availability_reason"),
        F.when(watched, F.col("seen")).alias("outages"),
        F.when(watched & (F.col("seen") > 0), F.col("down_s") / F.col("seen")).alias(
            "outage_mean_s"
        ),
        F.when(~watched | (F.col("seen") == 0), "no outage was seen").alias("outage_reason"),
    )
