"""How does the delay between two hosts move from one round of measuring to the next?

In each slice a pair's one-way delay is half the mean of the round trips measured in it, from either
end. A pair that was not measured in a slice keeps the delay of the slice before, as a monitor would
that heard nothing new; before its first measurement it has that of the first. A pair that was never
measured is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


def slice_delays_s(
    table: Mapping[str, Column], chosen: list[int]
) -> dict[tuple[int, int], list[float]]:
    """The delays of each measured pair of the chosen hosts, one for each slice of the table."""
    source, target = table["source"].astype(np.int64), table["target"].astype(np.int64)
    among = np.isin(source, chosen) & np.isin(target, chosen) & (source != target)
    if not among.any():
        return {}
    base = max(chosen) + 1
    ends = np.minimum(source, target) * base + np.maximum(source, target)
    pairs, pair = np.unique(ends[among], return_inverse=True)
    slices = np.unique(table["slice"])
    at = np.searchsorted(slices, table["slice"][among])
    means_ms = _means(pair * slices.size + at, table["rtt_ms"][among], pairs.size * slices.size)
    filled_ms = _filled(means_ms.reshape(pairs.size, slices.size))
    keys = [divmod(number, base) for number in pairs.tolist()]
    return dict(zip(keys, (filled_ms / 2 / 1000).tolist(), strict=True))


def _means(cell: npt.NDArray[np.int64], values: Column, cells: int) -> Column:
    """The mean of the values in each cell; NaN where there are none."""
    counts = np.bincount(cell, minlength=cells)
    sums = np.bincount(cell, weights=values, minlength=cells)
    means = np.full(cells, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _filled(delays: Column) -> Column:
    """Each row with its gaps closed by what stood before them, or else by its first value."""
    known = np.isfinite(delays)
    place = np.where(known, np.arange(delays.shape[1]), -1)
    latest = np.maximum.accumulate(place, axis=1)
    first = known.argmax(axis=1)[:, np.newaxis]
    return np.take_along_axis(delays, np.where(latest < 0, first, latest), axis=1)
