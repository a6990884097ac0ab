"""What a person may set about the order of sending."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tidings.core.ranges import Finite, Ratio


class BenefitOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`[broker.benefit]`: the readings of bounded delay."""

    weight: Ratio = 0.8  # r of Eq. 10, in `ebpc`: of the benefit; the rest is postponing cost
    unlikely: Ratio = 0.0005  # epsilon of Eq. 11: a smaller chance is none
    delete: Literal["benefit", "all", "none"] = "benefit"  # policies that delete what has no chance
    postponement: Finite = 1.0  # FT of Eq. 6, in mean sending times of this link
    lifetimes: Literal["all", "unexpired"] = "all"  # whose average `rl` takes
