"""Which shifted gamma fits? `shift + gamma(shape, scale)`, with the mean of the samples.

Shape and scale
---------------
For a given shift, shape and scale follow in closed form from the mean of x ln x (Ye and Chen,
"Closed-form estimators for the gamma distribution derived from likelihood equations", The American
Statistician 71, 2017). That is nearly as good as maximum likelihood and, unlike moments, not ruled
by a few enormous delays.

Shift
-----
Likelihood cannot choose the shift: it grows without bound as the shift nears the least sample. So
several shifts are tried, and the one is taken whose distribution is nearest to the samples in
Kolmogorov's distance.

Only quantiles are looked at, so that a few odd samples do not rule the shift either: not even a
delay of zero, which is what is left where a message's bytes are thought to have taken all of it.
Such delays tell no shape; how far they are from the distribution counts as for all others.

The links of a batch are fitted together: a row of an array each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import gammainc

QUANTILES = 100  # of the samples: all that the fit looks at, however many they are
# How far below the least quantile a shift may be, in distances between that and the mean.
BELOW = (9.0, 5.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.03, 0.01, 0.003, 0.001)
LEVELS = tuple((number + 0.5) / QUANTILES for number in range(QUANTILES))
SAME = 1e-9  # relative: samples that differ by less are equal

Values = npt.NDArray[np.float64]


class Fits(NamedTuple):
    """The distributions of many links; NaN where there is none."""

    shift_s: Values
    shape: Values
    scale_s: Values
    distance: Values


def fitted(mean_s: Values, quantiles_s: Values) -> Fits:
    """The nearest shifted gammas of links with these means and quantiles (a row each); a delay that
    never changes is all shift. None: all quantiles are one, but the mean is another, so a few
    samples are far off and tell no shape."""
    positive = np.where(quantiles_s > 0, quantiles_s, np.inf)
    least_s = positive.min(axis=1)
    best = Fits(*np.full((4, mean_s.size), np.nan))
    for part in (None, *BELOW):  # from the smallest shift to the largest; of equals, the first
        below_s = np.zeros(mean_s.size) if part is None else least_s - part * (mean_s - least_s)
        shift_s = np.maximum(0.0, below_s)
        possible = np.flatnonzero(shift_s < np.minimum(least_s, mean_s))
        tried = _at(shift_s[possible], mean_s[possible], quantiles_s[possible])
        better = ~(tried.distance >= best.distance[possible]) & ~np.isnan(tried.distance)
        for old, new in zip(best, tried, strict=True):
            old[possible[better]] = new[better]
    constant = np.abs(quantiles_s - mean_s[:, np.newaxis]).max(axis=1) <= SAME * mean_s
    best.shift_s[constant] = mean_s[constant]
    best.shape[constant], best.scale_s[constant], best.distance[constant] = 1.0, 0.0, 0.0
    return best


def _at(shift_s: Values, mean_s: Values, quantiles_s: Values) -> Fits:
    """The gammas with these shifts; NaN where the quantiles tell no shape."""
    above = np.maximum(quantiles_s - shift_s[:, np.newaxis], 0.0)
    count = np.maximum((above > 0).sum(axis=1), 1)
    logs = np.log(above, where=above > 0, out=np.zeros_like(above))
    x_s = above.sum(axis=1) / count
    spread = (above * logs).sum(axis=1) / count - logs.sum(axis=1) / count * x_s
    shape = x_s / np.where(spread > SAME * x_s, spread, np.nan)
    scale_s = (mean_s - shift_s) / shape
    reached = gammainc(shape[:, np.newaxis], above / scale_s[:, np.newaxis])
    return Fits(shift_s, shape, scale_s, np.abs(reached - LEVELS).max(axis=1))


def with_fits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: links get their distribution, or none; those without quantiles none."""
    names = ("delay_shift_s", "delay_shape", "delay_scale_s", "delay_fit_distance")
    for batch in batches:
        lists = batch["quantiles_s"]
        many = np.flatnonzero(lists.is_valid())
        quantiles_s = lists.flatten().to_numpy().reshape(-1, QUANTILES)
        fits = fitted(batch["mean_s"].to_numpy()[many], quantiles_s)
        batch = batch.drop_columns(["mean_s", "quantiles_s"])
        for name, values in zip(names, fits, strict=True):
            column = np.full(batch.num_rows, np.nan)
            column[many] = values
            batch = batch.append_column(name, pa.array(column, from_pandas=True))
        yield batch
