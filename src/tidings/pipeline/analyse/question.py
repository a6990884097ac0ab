"""What can be asked of a run? Numbers, or series over something, of all that it owed or of a part.

A question says which metrics, and over what they are spread: nothing (a number for the whole run),
its subscriptions, stretches of its time, or the places where a distribution is read. Answers are
tidy: one row per run, strategy, metric and place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pandas as pd
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.pipeline.trace_frames import Traces
from tidings.pipeline.transforms import metrics
from tidings.pipeline.transforms.latency import (
    LATENCY,
    SERVICE,
    delay_cdf,
    latency_over_time,
    service,
)
from tidings.pipeline.transforms.lateness import lateness_cdf
from tidings.pipeline.transforms.outcomes import outcomes
from tidings.pipeline.transforms.traffic import RATES, RECEPTIONS, byte_rates, messages_received
from tidings.traces.outcomes import OUTCOME_COLUMNS

Over = Literal["run", "lateness", "subscriber", "delay", "time"]

LATENESS_CDF, DELAY_CDF = "lateness_cdf", "delay_cdf"
MEASURES: dict[Over, tuple[str, ...]] = {
    "run": (*metrics.FIGURES, *RECEPTIONS, *LATENCY, *RATES),
    "lateness": (LATENESS_CDF,),
    "subscriber": SERVICE,
    "delay": (DELAY_CDF,),
    "time": LATENCY,
}

# Where distributions are read, if nothing else is said: of lateness in steps of 5 % up to three
# deadlines, of delays in steps of 5 ms up to 0.3 s.
LATENESS_RATIOS = tuple(1 + step / 20 for step in range(41))
DELAYS_S = tuple(step / 200 for step in range(1, 61))

KEYS = ["run", "strategy"]
COLUMNS = [*KEYS, "metric", "subscription", "at", "value"]


class Question(Struct, frozen=True):
    """What is asked of each run."""

    metrics: tuple[str, ...]  # of `MEASURES`
    over: Over = "run"
    at: tuple[float, ...] = ()  # where a distribution is read
    bin_s: float = 0.0  # the length of a stretch of time
    subscription: str | None = None  # absent: of all that the run owed


class Material(Struct, frozen=True):
    """What runs are asked about: their rows, how long each of them published, and in which of them
    publishers stand apart, at the far end of a link of their own."""

    spark: SparkSession
    traces: Traces
    outcomes: DataFrame
    seconds: Mapping[str, float]
    publishers_apart: frozenset[str]

    def lengths(self) -> DataFrame:
        rows = [(run, float(seconds)) for run, seconds in self.seconds.items()]
        return self.spark.createDataFrame(rows, "run string, seconds double")

    def apart(self) -> DataFrame:
        rows = [(run,) for run in sorted(self.publishers_apart)]
        return self.spark.createDataFrame(rows, "run string")


def needed(traces: Traces, question: Question) -> DataFrame:
    """Outcomes without what only drops, or other questions, need."""
    columns = {*metrics.NEEDED} - {"reason"}
    if question.over == "time":
        columns.add("published_at")
    rows = outcomes(traces).select(*(name for name in OUTCOME_COLUMNS if name in columns))
    if question.subscription is None:
        return rows
    return rows.where(F.col("subscription") == question.subscription)


def answers(material: Material, question: Question) -> pd.DataFrame:
    """One row per run, strategy, metric and place: `COLUMNS`."""
    return ANSWERS[question.over](material, question).reindex(columns=COLUMNS)


def _of_runs(material: Material, question: Question) -> pd.DataFrame:
    rows, traces = material.outcomes, material.traces
    published, carried = traces["published"], traces["carried"]
    sources: list[tuple[Sequence[str], Callable[[], DataFrame]]] = [
        (metrics.FIGURES, lambda: metrics.per_strategy(rows, published, carried)),
        (RECEPTIONS, lambda: messages_received(carried, published, material.apart())),
        (LATENCY, lambda: service(rows, *KEYS)),
        (RATES, lambda: byte_rates(carried, published, material.lengths())),
    ]
    tables = []
    for made, frame in sources:
        if wanted := [name for name in question.metrics if name in made]:
            tables.append(_tidy(_collected(frame(), KEYS, wanted), KEYS))
    return pd.concat(tables)


def _of_subscribers(material: Material, question: Question) -> pd.DataFrame:
    """Of each subscription; and, without a subscription, the unweighted mean over them."""
    keys = [*KEYS, "subscription"]
    each = _collected(service(material.outcomes, *keys), keys, question.metrics)
    mean = each.drop(columns="subscription").groupby(KEYS, as_index=False).mean()
    return pd.concat([_tidy(each, keys), _tidy(mean, KEYS)])


def _over_time(material: Material, question: Question) -> pd.DataFrame:
    keys = [*KEYS, "at"]
    frame = latency_over_time(material.outcomes, question.bin_s)
    return _tidy(_collected(frame, keys, question.metrics), keys)


def _of_delays(material: Material, question: Question) -> pd.DataFrame:
    shares: pd.DataFrame = delay_cdf(material.outcomes, question.at).toPandas()
    return shares.rename(columns={"share": "value"}).assign(metric=DELAY_CDF)


def _of_lateness(material: Material, question: Question) -> pd.DataFrame:
    shares: pd.DataFrame = lateness_cdf(material.outcomes, question.at).toPandas()
    named = shares.rename(columns={"ratio": "at", LATENESS_CDF: "value"})
    return named.assign(metric=LATENESS_CDF)


ANSWERS: dict[Over, Callable[[Material, Question], pd.DataFrame]] = {
    "run": _of_runs,
    "lateness": _of_lateness,
    "subscriber": _of_subscribers,
    "delay": _of_delays,
    "time": _over_time,
}


def _collected(frame: DataFrame, keys: Sequence[str], wanted: Sequence[str]) -> pd.DataFrame:
    """Only what is wanted: Spark then makes nothing else."""
    table: pd.DataFrame = frame.select(*keys, *wanted).toPandas()
    return table


def _tidy(wide: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    return wide.melt([*keys], var_name="metric", value_name="value")
