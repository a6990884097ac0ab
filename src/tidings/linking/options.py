"""What a person may set about linkers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tidings.core.ranges import Finite, Whole

MOST_LINKS = 1_000


class LinkingOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`[broker.linker]`: how many links, and how eagerly better ones are sought."""

    degree: Annotated[int, Meta(ge=1, le=MOST_LINKS)] = 4  # links that a broker wants for itself
    look_every_s: Finite = 0.5  # news of the overlay is looked at no more often
    patience_s: Annotated[float, Meta(gt=0, le=1e9)] = 1.0  # with a member that seems cut off

    # `nearest`
    explore: Annotated[int, Meta(ge=0, le=MOST_LINKS)] = 2  # links at a time, only to measure them
    in_vain: Annotated[int, Meta(ge=1, le=100_000)] = 20  # in a row, before it rests `remember_s`
    measure_s: Finite = 5.0  # such a link is judged when it has been up for so long
    remember_s: Annotated[float, Meta(gt=0, le=1e9)] = 3600.0  # a delay; then it is measured again
    # A member replaces another one if it is nearer by this part of the delay.
    improvement: Annotated[float, Meta(ge=0, lt=1)] = 0.2

    # `random`
    spare_links: Annotated[int, Meta(ge=1, le=MOST_LINKS)] = 4  # beyond `degree`, opened by others
    passive: Annotated[int, Meta(ge=1, le=100_000)] = 30  # members to choose new neighbours from
    shuffle_every_s: Annotated[float, Meta(gt=0, le=1e9)] = 30.0  # how often these are others
    seed: Whole = 0
