"""What do the traces of a folder say? Read, transform, write: metrics as tidy tables.

`strategies` has one row per run and strategy; `subscribers`, `topics`, `windows` and `links` one
per run and that; `drops` the reasons; `costs` what a delivery took; `reliability` the four levels
of the pruning paper; `delay_cdf` and `lateness_cdf` distributions; `quarantined` the files that
were not read, and why. A sweep's folder also gives `study`, the mean over seeds of each strategy
and setting with its confidence interval, and `differences`, those between strategies on the same
seeds. docs/guide/traces.md defines every figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.files.folders import replaced
from tidings.pipeline.analyse.intervals import with_intervals, with_paired_intervals
from tidings.pipeline.analyse.question import LATENESS_RATIOS
from tidings.pipeline.analyse.spark_settings import is_tiny, settings_for_size
from tidings.pipeline.file_retry import spark_error, with_file_retry
from tidings.pipeline.trace_frames import Traces, all_good, read_intake
from tidings.pipeline.transforms import metrics, served
from tidings.pipeline.transforms.cost import cost, discarded
from tidings.pipeline.transforms.latency import delay_cdf
from tidings.pipeline.transforms.lateness import lateness_cdf
from tidings.pipeline.transforms.linkload import per_link
from tidings.pipeline.transforms.outcomes import EXAMINED_COLUMNS, examined, outcomes
from tidings.pipeline.transforms.reliability import reliability
from tidings.traces.intake import Intake, Quarantined, take_in
from tidings.traces.outcomes import By
from tidings.traces.points import finished_points

WINDOW_S = 60.0
CDF_PLACES = 41  # of the distribution of delays, from the shortest to the longest
SHORTEST_S = 1e-4  # below, it says more about the machine than about the network


class Analysis(Struct, frozen=True):
    """The tables of a trace folder, small enough for one machine."""

    strategies: pd.DataFrame
    subscribers: pd.DataFrame
    drops: pd.DataFrame
    topics: pd.DataFrame
    windows: pd.DataFrame
    links: pd.DataFrame
    costs: pd.DataFrame
    reliability: pd.DataFrame
    delay_cdf: pd.DataFrame
    lateness_cdf: pd.DataFrame
    quarantined: pd.DataFrame
    study: pd.DataFrame | None = None
    differences: pd.DataFrame | None = None

    def tables(self) -> dict[str, pd.DataFrame]:
        """By name; the tables of a sweep first, if it is one."""
        named: dict[str, pd.DataFrame | None] = msgspec.structs.asdict(self)
        study = {name: named.pop(name) for name in ("study", "differences")}
        return {name: table for name, table in (study | named).items() if table is not None}


def analyse(
    spark: SparkSession,
    folder: Path,
    by: By = "clock",
    window_s: float = WINDOW_S,
    intake: Intake | None = None,
) -> Analysis:
    """All metrics of the traces in a folder; `intake` is what was found in it, if that is known."""
    sound = take_in(folder) if intake is None else intake
    analysed = partial(_analysed, spark, folder, by, window_s)
    return with_file_retry(folder, sound, "analyse", analysed)


def study_of(spark: SparkSession, folder: Path, name: str) -> pd.DataFrame:
    """Only the table of one study, for the end of a sweep; other studies may share the folder."""
    points = finished_points(folder).to_pylist()
    intake = all_good(folder, {row["point"] for row in points if row["study"] == name})
    needed = set(metrics.NEEDED) - {"subscription", "deadline_s", "reason"}  # of subscribers, drops
    try:
        traces = _traces(spark, folder, intake)
        with (
            settings_for_size(spark, intake.size_bytes()),
            persisted(outcomes(traces).select(*sorted(needed))) as rows,
        ):
            strategies = metrics.per_strategy(rows, traces["published"], traces["carried"])
            study = _study(strategies, traces)
    except Exception as error:
        raise spark_error("analyse", folder, error) from error
    assert study is not None, f"{folder} is not the folder of a sweep"
    return study[study["study"] == name].reset_index(drop=True)


def write(analysis: Analysis, out: Path) -> list[Path]:
    """Each table as Parquet and as CSV; a file is whole or not there."""
    written = []
    for name, table in analysis.tables().items():
        written.append(replaced(out / f"{name}.parquet", table.to_parquet))
        written.append(replaced(out / f"{name}.csv", partial(table.to_csv, index=False)))
    return written


def _analysed(
    spark: SparkSession, folder: Path, by: By, window_s: float, intake: Intake
) -> Analysis:
    traces = _traces(spark, folder, intake)
    needed = [name for name in EXAMINED_COLUMNS if name != "hops"]
    with (
        settings_for_size(spark, intake.size_bytes()),
        persisted(examined(traces, by).select(*needed)) as rows,
        persisted(_strategies(rows, traces)) as strategies,
    ):
        keys = ("run", "strategy")
        return Analysis(
            _collected(strategies, *keys),
            _collected(served.per_subscriber(rows), "run", "subscription"),
            _collected(metrics.drop_reasons(rows), *keys, "reason"),
            _collected(served.per_topic(rows), *keys, "topic"),
            _collected(served.per_window(rows, window_s), *keys, "window_at"),
            _collected(per_link(traces), "run", "broker", "neighbour"),
            _collected(cost(traces["carried"], strategies), "run", "part"),
            _collected(reliability(rows), *keys, "level", "subscriber", "topic"),
            _collected(delay_cdf(rows, cdf_places(rows)), *keys, "at"),
            _collected(lateness_cdf(rows, LATENESS_RATIOS), *keys, "ratio"),
            _named(intake.quarantined),
            _study(strategies, traces),
            _differences(strategies, traces),
        )


def _traces(spark: SparkSession, folder: Path, intake: Intake) -> Traces:
    traces = read_intake(spark, folder, intake)
    return traces.in_one_partition() if is_tiny(intake.size_bytes()) else traces


def _strategies(rows: DataFrame, traces: Traces) -> DataFrame:
    """`metrics.per_strategy`, `served.extra_figures` and discarded frames."""
    carried = traces["carried"]
    return (
        metrics.per_strategy(rows, traces["published"], carried, served.extra_figures())
        .join(discarded(carried), "run", "left")
        .na.fill(0, ["second_deliveries", "clock_jumps", "discarded_frames"])
    )


def cdf_places(rows: DataFrame) -> list[float]:
    """Where the distribution of delays is read: each a little longer than the last, by one factor,
    so that milliseconds and minutes are both seen."""
    shortest, longest = rows.agg(F.min("delay_s"), F.max("delay_s")).collect()[0]
    if longest is None:
        return [1.0]
    first = max(shortest, SHORTEST_S)
    last = float(max(longest, first))
    places = np.geomspace(first, last, CDF_PLACES)
    return sorted({*(min(float(f"{place:.4g}"), last) for place in places), last})


def _study(strategies: DataFrame, traces: Traces) -> pd.DataFrame | None:
    if traces.points is None:
        return None
    return with_intervals(metrics.over_seeds(strategies, traces.points).toPandas())


def _differences(strategies: DataFrame, traces: Traces) -> pd.DataFrame | None:
    if traces.points is None:
        return None
    return with_paired_intervals(metrics.paired(strategies, traces.points).toPandas())


def _named(quarantined: tuple[Quarantined, ...]) -> pd.DataFrame:
    rows = [msgspec.structs.asdict(one) for one in quarantined]
    return pd.DataFrame(rows, columns=list(Quarantined.__struct_fields__), dtype="object")


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Kept while several tables are made of it."""
    frame.persist()
    try:
        yield frame
    finally:
        with suppress(Exception):  # of a talk with Java that an interrupt has cut short
            frame.unpersist()


def _collected(frame: DataFrame, *order: str) -> pd.DataFrame:
    table: pd.DataFrame = frame.toPandas()
    return table.sort_values(list(order), ignore_index=True)
