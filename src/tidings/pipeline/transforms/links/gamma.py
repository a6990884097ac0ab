"""Which shifted gamma fits? `shift + gamma(shape, scale)`, with the mean of the samples.

For a given shift, shape and scale follow in closed form from the mean of x ln x (Ye and Chen,
"Closed-form estimators for the gamma distribution derived from likelihood equations", The American
Statistician 71, 2017): nearly as good as maximum likelihood and, unlike moments, not ruled by a few
enormous delays. Likelihood itself cannot choose the shift (it grows without bound as the shift
nears the least sample), so the one of several below the least sample is taken whose distribution is
nearest to the samples in Kolmogorov's distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import gammainc

QUANTILES = 100  # of the samples: all that the fit looks at, however many they are
# How far below the least sample a shift may be, in distances between that and the mean.
BELOW = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0)
LEVELS = tuple((number + 0.5) / QUANTILES for number in range(QUANTILES))
SAME = 1e-9  # relative: samples that differ by less are equal

Quantiles = npt.NDArray[np.float64]


class Fit(NamedTuple):
    shift_s: float
    shape: float
    scale_s: float
    distance: float


def fitted(mean_s: float, least_s: float, quantiles_s: Quantiles) -> Fit:
    """The nearest shifted gamma; a delay that never changes is all shift."""
    if mean_s - least_s <= SAME * mean_s:
        return Fit(mean_s, 1.0, 0.0, 0.0)
    shifts = {max(0.0, least_s - part * (mean_s - least_s)) for part in BELOW}
    tried = (_at(shift_s, mean_s, quantiles_s) for shift_s in sorted(shifts) if shift_s < least_s)
    return min(tried, key=_distance, default=Fit(mean_s, 1.0, 0.0, 1.0))


def _at(shift_s: float, mean_s: float, quantiles_s: Quantiles) -> Fit:
    x = quantiles_s - shift_s
    x_s = x.mean()
    spread = (x * np.log(x)).mean() - np.log(x).mean() * x_s
    if not spread > 0:  # all quantiles are one: a few outliers beside a delay that never changes
        return Fit(mean_s, 1.0, 0.0, 1.0)
    shape = x_s / spread
    distance = np.abs(gammainc(shape, x / (x_s / shape)) - LEVELS).max()
    return Fit(shift_s, float(shape), float((mean_s - shift_s) / shape), float(distance))


def _distance(fit: Fit) -> float:
    return fit.distance


def with_fits(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """For `mapInPandas`: rows with mean, least and quantiles get their distribution."""
    for frame in frames:
        rows = zip(frame["mean_s"], frame["least_s"], frame["quantiles_s"], strict=True)
        fits = [fitted(mean_s, least_s, np.asarray(q)) for mean_s, least_s, q in rows]
        names = ("delay_shift_s", "delay_shape", "delay_scale_s", "delay_fit_distance")
        columns = pd.DataFrame(fits, columns=list(names), index=frame.index)
        yield pd.concat([frame[["source", "target"]], columns], axis=1)
