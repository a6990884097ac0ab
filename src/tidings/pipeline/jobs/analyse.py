"""What do the traces of a folder say? Read, transform, write: metrics as tidy tables.

`strategies` has one row per run and strategy, `subscribers` one per run and subscription, `drops`
one per run, strategy and reason. A sweep's folder also gives `study`: one row per strategy and
setting, the mean over seeds with the half-width of its 95 % confidence interval (Student's t, as
seeds are few).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import pandas as pd
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from scipy import stats

from tidings.pipeline.outcomes import By
from tidings.pipeline.sources import Traces, read_traces
from tidings.pipeline.transforms import metrics
from tidings.pipeline.transforms.outcomes import outcomes

CONFIDENCE = 0.95


class Analysis(Struct, frozen=True):
    """The tables of a trace folder, small enough for one machine."""

    strategies: pd.DataFrame
    subscribers: pd.DataFrame
    drops: pd.DataFrame
    study: pd.DataFrame | None = None

    def tables(self) -> dict[str, pd.DataFrame]:
        named = {"strategies": self.strategies, "subscribers": self.subscribers}
        named |= {"drops": self.drops}
        return named if self.study is None else {"study": self.study} | named


def analyse(spark: SparkSession, folder: Path, by: By = "clock") -> Analysis:
    """All metrics of the traces in a folder."""
    traces = read_traces(spark, folder)
    with persisted(outcomes(traces, by).select(*metrics.NEEDED)) as rows:
        strategies = metrics.per_strategy(rows, traces["published"], traces["carried"])
        with persisted(strategies):
            return Analysis(
                _collected(strategies, "run", "strategy"),
                _collected(metrics.per_subscriber(rows), "run", "subscription"),
                _collected(metrics.drop_reasons(rows), "run", "strategy", "reason"),
                _study(strategies, traces),
            )


def study_of(spark: SparkSession, folder: Path, name: str) -> pd.DataFrame:
    """Only the table of one study, for the end of a sweep."""
    traces = read_traces(spark, folder)
    needed = set(metrics.NEEDED) - {"subscription", "deadline_s", "reason"}  # of subscribers, drops
    with persisted(outcomes(traces).select(*sorted(needed))) as rows:
        strategies = metrics.per_strategy(rows, traces["published"], traces["carried"])
        study = _study(strategies, traces)
    assert study is not None, f"{folder} is not the folder of a sweep"
    return study[study["study"] == name].reset_index(drop=True)


def swept(study: pd.DataFrame) -> list[str]:
    """The parameters that a study varies, whose names have a dot, and the setting."""
    return [name for name in study.columns if "." in name or name == "setting"]


def write(analysis: Analysis, out: Path) -> list[Path]:
    """Each table as Parquet and as CSV; a file is whole or not there."""
    written = []
    for name, table in analysis.tables().items():
        written.append(replaced(out / f"{name}.parquet", table.to_parquet))
        written.append(replaced(out / f"{name}.csv", partial(table.to_csv, index=False)))
    return written


def _study(strategies: DataFrame, traces: Traces) -> pd.DataFrame | None:
    if traces.points is None:
        return None
    return with_intervals(metrics.over_seeds(strategies, traces.points).toPandas())


def with_intervals(means: pd.DataFrame) -> pd.DataFrame:
    """Deviations over seeds become half-widths of confidence intervals (one seed has none), and
    the setting becomes a column per parameter that varies."""
    names = {f"{name}_deviation": f"{name}_interval" for name in metrics.FIGURES}
    factor = interval_factor(means["seeds"])
    widened = means.assign(**{name: means[name] * factor for name in names}).rename(columns=names)
    parameters = _parameters(means["setting"])
    study = pd.concat([widened[["study", "strategy"]], parameters, widened.iloc[:, 3:]], axis=1)
    return study.sort_values(list(study.columns[: study.columns.get_loc("seeds")])).reset_index(
        drop=True
    )


def interval_factor(samples: pd.Series) -> pd.Series:
    """What a sample deviation is multiplied with; NaN for a single sample."""
    count = samples.where(samples > 1).astype(float)
    return stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) / count**0.5


def _parameters(settings: pd.Series) -> pd.DataFrame:
    """A column for each parameter that has more than one value, of numbers where they are."""
    columns = pd.DataFrame([json.loads(setting) for setting in settings], index=settings.index)
    varied = columns.loc[:, columns.nunique(dropna=False) > 1]
    return varied.apply(lambda column: pd.to_numeric(column, errors="coerce").fillna(column))


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Kept while several tables are made of it."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def _collected(frame: DataFrame, *order: str) -> pd.DataFrame:
    table: pd.DataFrame = frame.toPandas()
    return table.sort_values(list(order), ignore_index=True)


def replaced(path: Path, save: Callable[[Path], Any]) -> Path:
    """The path, after a file saved under a hidden name has taken its place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{token_hex(4)}-{path.name}")
    save(draft)
    os.replace(draft, path)
    return path
