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
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import gammainc

QUANTILES = 100  # of the samples: all that the fit looks at, however many they are
# How far below the least quantile a shift may be, in distances between that and the mean.
BELOW = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0)
LEVELS = tuple((number + 0.5) / QUANTILES for number in range(QUANTILES))
SAME = 1e-9  # relative: samples that differ by less are equal

Quantiles = npt.NDArray[np.float64]


class Fit(NamedTuple):
    shift_s: float
    shape: float
    scale_s: float
    distance: float


NONE = (None, None, None, None)


def fitted(mean_s: float, quantiles_s: Quantiles) -> Fit | None:
    """The nearest shifted gamma; a delay that never changes is all shift. None: all quantiles are
    one, but the mean is another, so a few samples are far off and tell no shape."""
    if np.abs(quantiles_s - mean_s).max() <= SAME * mean_s:
        return Fit(mean_s, 1.0, 0.0, 0.0)
    least_s = float(quantiles_s[quantiles_s > 0].min(initial=inf))
    shifts = {0.0, *(max(0.0, least_s - part * (mean_s - least_s)) for part in BELOW)}
    possible = sorted(shift_s for shift_s in shifts if shift_s < min(least_s, mean_s))
    tried = (_at(shift_s, mean_s, quantiles_s) for shift_s in possible)
    return min((fit for fit in tried if fit is not None), key=_distance, default=None)


def _at(shift_s: float, mean_s: float, quantiles_s: Quantiles) -> Fit | None:
    above = np.maximum(quantiles_s - shift_s, 0.0)
    x = above[above > 0]
    x_s = x.mean()
    spread = (x * np.log(x)).mean() - np.log(x).mean() * x_s
    if not spread > SAME * x_s:
        return None
    shape = x_s / spread
    scale_s = (mean_s - shift_s) / shape
    distance = np.abs(gammainc(shape, above / scale_s) - LEVELS).max()
    return Fit(shift_s, float(shape), float(scale_s), float(distance))


def _distance(fit: Fit) -> float:
    return fit.distance


def with_fits(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """For `mapInPandas`: rows with mean and quantiles get their distribution, or none."""
    for frame in frames:
        rows = zip(frame["mean_s"], frame["quantiles_s"], strict=True)
        fits = [fitted(mean_s, np.asarray(q)) or NONE for mean_s, q in rows]
        names = ("delay_shift_s", "delay_shape", "delay_scale_s", "delay_fit_distance")
        columns = pd.DataFrame(fits, columns=list(names), index=frame.index)
        yield pd.concat([frame[["source", "target"]], columns], axis=1)
