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

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.pipeline.transforms.links.samples import LINK
from tidings.pipeline.transforms.links.whole_groups import group_starts, in_groups, over_groups

HORIZONS = (1, 10)  # slices
LAST, MEAN, EXPECTED, TYPICAL = "last value", "mean", "model: expected", "model: typical"
KEPT = np.linspace(0.0, 1.0, 21)  # candidates of the typical model
LEAST_PAIRS = 2  # to try a prediction
ENOUGH_PAIRS = 20  # for a persistence
ROUNDING = 1e-12  # relative: a delay that never changes deviates from its mean by less
ERROR_TYPE = "horizon int, predictor string, count long, absolute_s double, squared_s2 double"
PERSISTENCE_TYPE = "source string, target string, persistence double"
Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class SlicePairs(NamedTuple):
    """Of many links: what was known, and what came so many slices later."""

    link: Numbers
    known_s: Values
    came_s: Values

    def where(self, wanted: Flags) -> SlicePairs:
        return SlicePairs(self.link[wanted], self.known_s[wanted], self.came_s[wanted])


def slices(delays: DataFrame, slice_s: float, hold_back: float) -> DataFrame:
    """The delay of each slice: run, source, target, slice, delay_s, level_s, held_back; those of a
    link lie together, in the order of time."""
    number = F.floor(F.col("sent_at") / slice_s).cast("long")
    series = delays.groupBy("run", *LINK, number.alias("slice")).agg(
        F.avg("delay_s").alias("delay_s"), F.avg("level_s").alias("level_s")
    )
    runs = series.groupBy("run").agg(F.min("slice").alias("first"), F.max("slice").alias("last"))
    kept = F.floor((F.col("last") - F.col("first") + 1) * (1 - hold_back))
    held_back = F.col("slice") >= F.col("first") + kept
    joined = series.join(F.broadcast(runs), "run").withColumn("held_back", held_back)
    columns = joined.select("run", *LINK, "slice", "delay_s", "level_s", "held_back")
    return in_groups(columns, LINK, ("run", "slice"))


def errors(series: DataFrame) -> DataFrame:
    """Sums of errors over the held-back slices (`ERROR_TYPE`); several rows per horizon and
    predictor, each of many links."""
    return over_groups(series, LINK, errors_of_links, ERROR_TYPE)


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


def persistence(series: DataFrame) -> DataFrame:
    """One row per link: the part of a deviation that is left after one slice, or the reason."""
    few = f"fewer than {ENOUGH_PAIRS} slices with a delay follow one with a delay"
    known = over_groups(series, LINK, persistence_of_links, PERSISTENCE_TYPE)
    reason = F.when(F.col("persistence").isNull(), few).alias("persistence_reason")
    return known.select(*LINK, "persistence", reason)


def errors_of_links(series: pa.Table) -> pa.RecordBatch:
    """For `over_groups`: the rows of `errors`, of all these links together."""
    rows = [
        (horizon, predictor, wrong_s.size, np.abs(wrong_s).sum(), (wrong_s**2).sum())
        for horizon in HORIZONS
        for predictor, wrong_s in _tried(series, horizon)
        if wrong_s.size
    ]
    names = [column.split()[0] for column in ERROR_TYPE.split(", ")]
    types = [pa.int32(), pa.string(), pa.int64(), pa.float64(), pa.float64()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    return pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


def persistence_of_links(series: pa.Table) -> pa.RecordBatch:
    """For `over_groups`: told by every slice and the next one; those before and after a gap are no
    pair."""
    link, links = _numbers(series, LINK)
    run, _ = _numbers(series, (*LINK, "run"))
    levels_s, at = series["level_s"].to_numpy(), series["slice"].to_numpy()
    next_ = np.flatnonzero((np.diff(run) == 0) & (np.diff(at) == 1))
    pairs = SlicePairs(link[next_], levels_s[next_], levels_s[next_ + 1])
    count = np.bincount(pairs.link, minlength=links)
    kept = _least_squares(pairs, _means(pairs.link, pairs.came_s, links))
    told = pa.array(kept, mask=count < ENOUGH_PAIRS)
    ends = series.select(LINK).take(group_starts(series, LINK)).combine_chunks().to_batches()[0]
    return ends.append_column("persistence", told)


def _tried(series: pa.Table, horizon: int) -> Iterator[tuple[str, Values]]:
    """The errors of each predictor on what was held back, of all links with enough to learn."""
    link, links = _numbers(series, LINK)
    delay_s, held_back = series["delay_s"].to_numpy(), series["held_back"].to_numpy()
    known, came = _pairs(series, horizon)
    pairs, held = SlicePairs(link[came], delay_s[known], delay_s[came]), held_back[came]
    train = pairs.where(~held)
    enough = np.bincount(train.link, minlength=links) >= LEAST_PAIRS
    learned, tried = ~held_back, pairs.where(held & enough[pairs.link])
    mean_s = _means(link[learned], delay_s[learned], links)
    median_s = _medians(link[learned], delay_s[learned], links)
    keep, typically = _least_squares(train, mean_s), _least_absolute(train, median_s)
    of, known_s, came_s = tried
    yield LAST, known_s - came_s
    yield MEAN, mean_s[of] - came_s
    yield EXPECTED, mean_s[of] + keep[of] * (known_s - mean_s[of]) - came_s
    yield TYPICAL, median_s[of] + typically[of] * (known_s - median_s[of]) - came_s


def _pairs(series: pa.Table, horizon: int) -> tuple[Numbers, Numbers]:
    """Each slice (the second) with the last one of its run that was known so long before."""
    run, _ = _numbers(series, (*LINK, "run"))
    at = series["slice"].to_numpy()
    at = at - at.min()
    place = run * (int(at.max()) + horizon + 1) + at  # rising, and runs are a horizon apart
    known = np.searchsorted(place, place - horizon, side="right") - 1
    came = np.flatnonzero((known >= 0) & (run[known] == run))
    return known[came], came


def _numbers(series: pa.Table, keys: tuple[str, ...]) -> tuple[Numbers, int]:
    """The number of each row's group, and how many there are."""
    starts = group_starts(series, keys)
    return np.repeat(np.arange(starts.size), np.diff(starts, append=series.num_rows)), starts.size


def _means(link: Numbers, values: Values, links: int) -> Values:
    count = np.bincount(link, minlength=links)
    return np.bincount(link, weights=values, minlength=links) / np.maximum(count, 1)


def _medians(link: Numbers, values: Values, links: int) -> Values:
    values = values[np.lexsort((values, link))]
    count = np.bincount(link, minlength=links)
    first = np.cumsum(count) - count
    padded = np.append(values, 0.0)  # of links without values there is none
    low, high = padded[first + (np.maximum(count, 1) - 1) // 2], padded[first + count // 2]
    medians: Values = (low + high) / 2
    return medians


def _least_squares(pairs: SlicePairs, level_s: Values) -> Values:
    """Of each link: the part of a deviation that is kept."""
    known_s, came_s = pairs.known_s - level_s[pairs.link], pairs.came_s - level_s[pairs.link]
    known_s = np.where(np.abs(known_s) > ROUNDING * level_s[pairs.link], known_s, 0.0)
    square = np.bincount(pairs.link, weights=known_s**2, minlength=level_s.size)
    product = np.bincount(pairs.link, weights=known_s * came_s, minlength=level_s.size)
    kept: Values = np.clip(product / np.where(square > 0, square, 1.0), 0.0, 1.0)
    return kept


def _least_absolute(pairs: SlicePairs, level_s: Values) -> Values:
    known_s, came_s = pairs.known_s - level_s[pairs.link], pairs.came_s - level_s[pairs.link]
    wrong_s = [
        np.bincount(pairs.link, weights=np.abs(part * known_s - came_s), minlength=level_s.size)
        for part in KEPT
    ]
    best: Values = KEPT[np.argmin(wrong_s, axis=0)]
    return best
