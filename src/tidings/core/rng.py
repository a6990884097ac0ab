"""Keyed chance: the one door through which randomness enters.

A draw belongs to (seed, purpose, what it is about), never to the order in which draws are made. So
two strategies on one seed meet the same failures and losses (common random numbers), and a run is
the same in any process, on any machine, inside any Spark executor. The generator is NumPy's Philox,
which is counter-based: a key names a whole stream at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from statistics import NormalDist
from typing import TypeVar

import numpy as np

T = TypeVar("T")

LOSS_TABLE_BITS = 20  # a ratio is exact to one part in a million; 1 MB, shared by all links
_LOSS_MASK = (1 << LOSS_TABLE_BITS) - 1
NORMAL_TABLE_BITS = 16  # out to 4.3 deviations; 2 MB, shared by all links
_NORMAL_MASK = (1 << NORMAL_TABLE_BITS) - 1


class Draws:
    """All the chance of one run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._short = np.random.Generator(np.random.Philox(key=0))
        self._start = self._short.bit_generator.state
        self._lost_at: dict[float, bytes] = {}
        self._deviations: list[float] = []

    def key(self, purpose: str, *about: object) -> int:
        """The 64-bit name of one stream of chance."""
        text = "\x1f".join([str(self.seed), purpose, *map(str, about)])
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")

    def stream(self, purpose: str, *about: object) -> np.random.Generator:
        """An independent generator for one purpose and subject."""
        return np.random.Generator(np.random.Philox(key=self.key(purpose, *about)))

    def _short_stream(self, purpose: str, *about: object) -> np.random.Generator:
        """The same numbers as `stream` gives, until the next call: one generator is set to the
        beginning of one stream after the other, in a fifth of the time that a new one takes. An
        overlay asks for one number for each of its links."""
        self._start["state"]["key"][0] = self.key(purpose, *about)
        self._short.bit_generator.state = self._start
        return self._short

    def uniform(self, low: float, high: float, purpose: str, *about: object) -> float:
        """One draw from [low, high)."""
        return float(self._short_stream(purpose, *about).uniform(low, high))

    def chosen(self, items: Sequence[T], count: int, purpose: str, *about: object) -> list[T]:
        """`count` of the items, without repetition, in the order drawn."""
        order = self._short_stream(purpose, *about).permutation(len(items))
        return [items[i] for i in order[:count]]

    def failed_epochs(self, probability: float, epochs: int, *about: object) -> bytes:
        """One byte per epoch: 1 where the subject (a link) fails for that whole epoch."""
        draws = self.stream("failure", *about).random(epochs)
        return (draws < probability).astype(np.uint8).tobytes()

    def loss_test(self, ratio: float, *about: object) -> Callable[[int, int], int] | None:
        """A test `lost(message_id, occasion)` for one link, true for `ratio` of all its keys; None
        where nothing is ever lost.

        A hash of small integers picks from one shuffled table of equally spaced quantiles: exact
        marginals for rare losses, and about 0.2 microseconds a draw where a generator per key would
        cost ten. Python's hash of a tuple of integers does not depend on PYTHONHASHSEED.
        """
        if ratio <= 0.0:
            return None
        table, link = self._loss_table(ratio), self.key("loss", *about)
        return lambda message_id, occasion: table[hash((link, message_id, occasion)) & _LOSS_MASK]

    def normal(
        self, mean: float, deviation: float, least: float, purpose: str, *about: object
    ) -> Callable[[int, int], float]:
        """A draw `drawn(message_id, occasion)` for one link: normal, but never below `least`.

        Like `loss_test`, a hash picks from one shuffled table of equally spaced quantiles.
        """
        table, link = self._normal_table(), self.key(purpose, *about)

        def drawn(message_id: int, occasion: int) -> float:
            deviations = table[hash((link, message_id, occasion)) & _NORMAL_MASK]
            return max(least, mean + deviation * deviations)

        return drawn

    def _normal_table(self) -> list[float]:
        """The standard normal distribution at the middle of each of its equal parts."""
        if not self._deviations:
            quantiles = _normal_quantiles()
            shuffled = self.stream("normal-table").permutation(len(quantiles)).tolist()
            self._deviations = [quantiles[part] for part in shuffled]
        return self._deviations

    def _loss_table(self, ratio: float) -> bytes:
        """One byte per quantile, shared by all links of the same ratio."""
        if ratio not in self._lost_at:
            quantiles = self.stream("loss-table").permutation(_LOSS_MASK + 1)
            self._lost_at[ratio] = (quantiles < ratio * (_LOSS_MASK + 1)).astype(np.uint8).tobytes()
        return self._lost_at[ratio]


@cache
def _normal_quantiles() -> list[float]:
    """The same for all seeds, so that a sweep computes them once."""
    parts, quantile = _NORMAL_MASK + 1, NormalDist().inv_cdf
    return [quantile((part + 0.5) / parts) for part in range(parts)]
