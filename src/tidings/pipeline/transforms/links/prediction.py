"""How well can a link's next delays be predicted? Tried on the last part of every run.

Predictors
----------
All of them know the delays of a link up to some slices before the one to predict, and what they
learned from the earlier part of each run:

    last value   the delay of the last slice that is known
    mean         the mean of the earlier part
    model        level + keep * (last - level): a deviation fades. Which number is best depends on
                 how errors are counted, so there are two: the `expected` delay has the mean as
                 its level and the `keep` of least squares; the `typical` delay has the median and
                 the `keep` of least absolute errors.

The delay of a slice is the mean of those measured in it; predictors pass over slices without any.

Persistence
-----------
The persistence of the model is that of levels (`delay`), so that the hour of the day does not count
as persistence. It is what is left of a deviation one slice later. So only slices that follow each
other tell it: after a gap less is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.links.samples import LINK

HORIZONS = (1, 10)  # slices
LAST, MEAN, EXPECTED, TYPICAL = "last value", "mean", "model: expected", "model: typical"
KEPT = np.linspace(0.0, 1.0, 21)  # candidates of the typical model
LEAST_PAIRS = 2  # to try a prediction
ENOUGH_PAIRS = 20  # for a persistence
ERROR_TYPE = (
    "source string, target string, horizon int, predictor string, persistence double, "
    "count long, absolute_s double, squared_s2 double"
)
Values = npt.NDArray[np.float64]


class SlicePairs(NamedTuple):
    """What was known, what came so many slices later, and whether that is held back."""

    known_s: Values
    came_s: Values
    held_back: npt.NDArray[np.bool_]


def slices(delays: DataFrame, slice_s: float, hold_back: float) -> DataFrame:
    """The delay of each slice: run, source, target, slice, delay_s, level_s, held_back."""
    number = F.floor(F.col("sent_at") / slice_s).cast("long")
    series = delays.groupBy("run", *LINK, number.alias("slice")).agg(
        F.avg("delay_s").alias("delay_s"), F.avg("level_s").alias("level_s")
    )
    runs = series.groupBy("run").agg(F.min("slice").alias("first"), F.max("slice").alias("last"))
    kept = F.floor((F.col("last") - F.col("first") + 1) * (1 - hold_back))
    held_back = F.col("slice") >= F.col("first") + kept
    joined = series.join(F.broadcast(runs), "run").withColumn("held_back", held_back)
    return joined.select("run", *LINK, "slice", "delay_s", "level_s", "held_back")


def errors(series: DataFrame) -> DataFrame:
    """One row per link, horizon and predictor (`ERROR_TYPE`): sums over the held-back slices, and
    the link's persistence over all slices."""
    return series.groupBy(*LINK).applyInPandas(_of_link(), ERROR_TYPE)


def prediction_table(errors: DataFrame) -> DataFrame:
    """One row per horizon and predictor: slices predicted, MAE and RMSE in milliseconds."""
    count = F.sum("count")
    return (
        errors.groupBy("horizon", "predictor")
        .agg(
            count.alias("slices"),
            (F.sum("absolute_s") / count * 1000).alias("mae_ms"),
            (F.sqrt(F.sum("squared_s2") / count) * 1000).alias("rmse_ms"),
        )
        .where(F.col("slices") > 0)
        .select("horizon", "predictor", "slices", "mae_ms", "rmse_ms")
    )


def persistence(errors: DataFrame) -> DataFrame:
    """One row per link: the part of a deviation that is left after one slice, or the reason."""
    few = f"fewer than {ENOUGH_PAIRS} slices with a delay follow one with a delay"
    known = errors.groupBy(*LINK).agg(F.max("persistence").alias("persistence"))
    reason = F.when(F.col("persistence").isNull(), few).alias("persistence_reason")
    return known.select(*LINK, "persistence", reason)


def _of_link() -> Callable[[pd.DataFrame], pd.DataFrame]:
    def of_link(series: pd.DataFrame) -> pd.DataFrame:
        ends = tuple(series[name].iloc[0] for name in LINK)
        by_run = [run for _, run in series.sort_values("slice").groupby("run", sort=True)]
        learned = series.loc[~series["held_back"], "delay_s"].to_numpy()
        lasting = _persistence(by_run)
        rows = [
            (*ends, horizon, predictor, lasting, e.size, np.abs(e).sum(), (e**2).sum())
            for horizon in HORIZONS
            for predictor, e in _tried(_pairs(by_run, horizon), learned)
        ] or [(*ends, HORIZONS[0], LAST, lasting, 0, 0.0, 0.0)]
        names = ("horizon", "predictor", "persistence", "count", "absolute_s", "squared_s2")
        return pd.DataFrame(rows, columns=[*LINK, *names])

    return of_link


def _pairs(runs: list[pd.DataFrame], horizon: int) -> SlicePairs:
    """Every slice with the last one that was known so many slices before."""
    found = [_pairs_of_run(run, horizon) for run in runs]
    return SlicePairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _pairs_of_run(run: pd.DataFrame, horizon: int) -> SlicePairs:
    at, delay_s = run["slice"].to_numpy(), run["delay_s"].to_numpy()
    known = np.searchsorted(at, at - horizon, side="right") - 1
    has = known >= 0
    return SlicePairs(delay_s[known[has]], delay_s[has], run["held_back"].to_numpy(bool)[has])


def _tried(pairs: SlicePairs, learned_s: Values) -> Iterator[tuple[str, Values]]:
    """The errors of each predictor on what was held back."""
    held = pairs.held_back
    train = SlicePairs(pairs.known_s[~held], pairs.came_s[~held], held[~held])
    if train.came_s.size < LEAST_PAIRS:
        return
    known_s, came_s = pairs.known_s[held], pairs.came_s[held]
    mean_s, median_s = float(learned_s.mean()), float(np.median(learned_s))
    keep = _least_squares(train.known_s, train.came_s, mean_s)
    typically = _least_absolute(train.known_s, train.came_s, median_s)
    yield LAST, known_s - came_s
    yield MEAN, mean_s - came_s
    yield EXPECTED, mean_s + keep * (known_s - mean_s) - came_s
    yield TYPICAL, median_s + typically * (known_s - median_s) - came_s


def _persistence(runs: list[pd.DataFrame]) -> float | None:
    """Told by every slice and the next one; those before and after a gap are no pair."""
    following = [np.diff(run["slice"].to_numpy()) == 1 for run in runs]
    levels_s = [run["level_s"].to_numpy() for run in runs]
    known_s = np.concatenate([s[:-1][f] for s, f in zip(levels_s, following, strict=True)])
    came_s = np.concatenate([s[1:][f] for s, f in zip(levels_s, following, strict=True)])
    if came_s.size < ENOUGH_PAIRS:
        return None
    return _least_squares(known_s, came_s, float(came_s.mean()))


def _least_squares(known_s: Values, came_s: Values, level_s: float) -> float:
    known_s, came_s = known_s - level_s, came_s - level_s
    square = float((known_s**2).sum())
    return float(np.clip((known_s * came_s).sum() / square, 0.0, 1.0)) if square > 0 else 0.0


def _least_absolute(known_s: Values, came_s: Values, level_s: float) -> float:
    known_s, came_s = known_s - level_s, came_s - level_s
    wrong_s = np.abs(KEPT[:, np.newaxis] * known_s - came_s).sum(axis=1)
    return float(KEPT[wrong_s.argmin()])
