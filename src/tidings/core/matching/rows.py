"""What are conjunctions of one shape as arrays?

Equal tuples of constants are kept once and rows refer to them by a code, so what is merged, sorted
and compared is numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tidings.core.matching.conjunctions import Conjunction
from tidings.core.predicate.values import Constant

Keys = NDArray[np.int64]
Constants = tuple[Constant, ...]
NO_KEYS: Final[Keys] = np.empty(0, np.int64)
NO_KEYS.flags.writeable = False


class Rows(Struct, frozen=True):
    """Conjunctions in no particular order: row i has `constants[codes[i]]` and `limits[j][i]`."""

    keys: Keys
    constants: list[Constants]
    codes: NDArray[np.int64]
    limits: list[NDArray[np.float64]]


def rows_of(entries: Sequence[tuple[int, Conjunction]]) -> Rows:
    """The rows of conjunctions of one shape, each with the key it belongs to."""
    codes: dict[Constants, int] = {}
    coded = [codes.setdefault(entry.constants, len(codes)) for _, entry in entries]
    limits = np.array([entry.limits for _, entry in entries], np.float64)
    return Rows(
        keys=np.array([key for key, _ in entries], np.int64),
        constants=list(codes),
        codes=np.array(coded, np.int64),
        limits=list(limits.T.copy()),
    )


def joined(left: Rows, right: Rows) -> Rows:
    """The rows of both."""
    codes = {constants: code for code, constants in enumerate(left.constants)}
    recoded = [codes.setdefault(constants, len(codes)) for constants in right.constants]
    return Rows(
        keys=np.concatenate((left.keys, right.keys)),
        constants=list(codes),
        codes=np.concatenate((left.codes, np.array(recoded, np.int64)[right.codes])),
        limits=[np.concatenate(both) for both in zip(left.limits, right.limits, strict=True)],
    )
