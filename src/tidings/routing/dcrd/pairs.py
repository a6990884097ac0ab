"""What does a broker expect of itself, and when is that news for its neighbours?

For each target a broker has a pair: the expected delay and the delivery ratio from here. It is news
if it differs from the pair that was advertised last by more than a tolerance. Where the overlay
does not change, the tolerance doubles each time the pair has been advertised so many times again,
so that no oscillation lasts for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tidings.core.errors import WireError

DOUBLES_AFTER = 16  # advertisements of one pair
MOST_DOUBLINGS = 64  # beyond this no pair can change by enough anyway
LEAST_TOLERANCE = 1e-9  # doubling 0 would give 0
LEAST_DELAY_S = 0.001  # changes of shorter delays are measured against this
MOST_DELAY_S = 1e9  # where links lose most of what they carry, Eq. 3 can grow without end
NO_WAY = (0.0, 0.0)

Target = tuple[str, str, float]  # destination, and with filter "paper" its publisher and deadline
Expectation = tuple[float, float]  # expected delay in seconds, delivery ratio


class Pair(Struct, frozen=True, array_like=True, gc=False):
    """What a broker expects of itself with regard to a target; a ratio of 0 is "no way"."""

    destination: str
    publisher: str
    deadline_s: Annotated[float, Meta(ge=0)]
    delay_s: Annotated[float, Meta(ge=0, le=MOST_DELAY_S)]
    ratio: Annotated[float, Meta(ge=0, le=1)]

    @property
    def target(self) -> Target:
        return self.destination, self.publisher, self.deadline_s


def is_news(old: Expectation | None, new: Expectation, tolerance: float, times: int) -> bool:
    """Shall neighbours be told, after `old` was advertised, so many times in all?"""
    if old is None:
        return True
    (old_s, old_ratio), (delay_s, ratio) = old, new
    tolerance = max(tolerance, LEAST_TOLERANCE)
    tolerance *= 2.0 ** min(times // DOUBLES_AFTER, MOST_DOUBLINGS)
    return (
        (old_ratio > 0.0) != (ratio > 0.0)
        or abs(delay_s - old_s) > tolerance * max(old_s, LEAST_DELAY_S)
        or abs(ratio - old_ratio) > tolerance
    )


def encode(pairs: Sequence[Pair]) -> bytes | None:
    """The pairs as neighbours read them; None if there are none."""
    return _ENCODER.encode(pairs) if pairs else None


def decode(news: bytes) -> tuple[Pair, ...]:
    """The pairs that a neighbour advertises; a `WireError` if they are none."""
    try:
        return _DECODER.decode(news)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise WireError(f"its pairs of delay and ratio make no sense: {fault}") from None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Pair, ...])
