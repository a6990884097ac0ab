"""Does what the paper says hold here? A claim is data: a number of ours, and what it should be.

The number is a mean over topologies, a difference (`minus`) or a ratio (`over`) of two. A ratio of
means is one of sums. The mean of the ratios on single topologies may be far from it: one on which
the denominator is small counts much there. Both are told, the ratio of sums decides. The verdict is
always computed.

In a file
---------
    [[claim]]
    id = "dcrd-traffic"
    text = "DCRD costs about 1.2 times the packets of D-Tree at P_f = 0.1"  # in our own words
    paper = 1.2                       # the paper's figure: a number, or a word
    metric = "packets_per_subscriber"
    strategy = "dcrd"                 # or a list: then it must hold for each
    x = 0.1                           # or a list, or "every", the default: at each; of
                                      # subscriptions their labels, or "mean" over all of them
    over = { strategy = "d-tree" }    # or minus = {...}; what is not said is as on this side
    kind = "near"                     # one of `JUDGES`
    value = 1.2                       # absent: the paper's number
    tolerance = 0.05
    why = "..."                       # the reason; printed only if it does not hold
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan
from statistics import fmean
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from tidings.studies.judges import JUDGES, SeriesOfStrategies
from tidings.studies.wording import Form, X, number_text, x_text

ClaimKind = Literal["near", "at least", "at most", "rising", "falling", "flat", "peaking"]
Verdict = Literal["holds", "does not hold", "not judged"]
EVERY = "every"
TRENDS = ("rising", "falling", "flat", "peaking")  # about all x together; they expect no number


class MeanKey(NamedTuple):
    """Where a mean over topologies is looked up."""

    setting: str
    strategy: str
    metric: str
    x: X


BySeed = Mapping[MeanKey, Mapping[int, float]]  # what each mean is the mean of


class Other(Struct, frozen=True, forbid_unknown_fields=True):
    """The other side of a difference or ratio: what it differs in."""

    setting: str | None = None
    strategy: str | None = None
    metric: str | None = None
    x: X | None = None


class Claim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: str
    text: str
    paper: float | str
    metric: str
    strategy: str | Annotated[tuple[str, ...], Meta(min_length=1)]
    kind: ClaimKind
    section: str = ""  # absent: the study's
    setting: str = ""  # absent: the study's first
    x: X | Annotated[tuple[X, ...], Meta(min_length=1)] = EVERY
    minus: Other | None = None
    over: Other | None = None
    value: float | None = None
    tolerance: Annotated[float, Meta(ge=0)] = 0.0
    why: str = ""

    def strategies(self) -> tuple[str, ...]:
        return (self.strategy,) if isinstance(self.strategy, str) else self.strategy

    def xs(self, every: tuple[X, ...]) -> tuple[X, ...]:
        if self.x == EVERY:
            return every
        return self.x if isinstance(self.x, tuple) else (self.x,)

    def expected(self) -> float:
        """The number that ours is compared with; NaN where there is none."""
        if self.value is not None:
            return self.value
        return nan if isinstance(self.paper, str) else self.paper

    def form(self) -> Form:
        """What our number is; of a trend, how far it goes."""
        if self.minus or self.kind in TRENDS:
            return "difference"
        return "factor" if self.over else "value"

    def sides(self, strategy: str, x: X) -> Iterator[MeanKey]:
        """The one or two means that our number is made of."""
        yield MeanKey(self.setting, strategy, self.metric, x)
        if other := self.minus or self.over:
            yield MeanKey(
                self.setting if other.setting is None else other.setting,
                other.strategy or strategy,
                other.metric or self.metric,
                x if other.x is None else other.x,
            )


class Finding(Struct, frozen=True):
    """A claim that was judged."""

    id: str
    section: str
    text: str
    paper: float | str
    ours: float | None
    verdict: Verdict
    why: str
    mean_of_ratios: float | None = None  # where ours is a ratio of sums, and seeds are known


def judge(
    claim: Claim,
    means: Mapping[MeanKey, float],
    every: tuple[X, ...],
    numbers: BySeed | None = None,
) -> Finding:
    """The verdict on a claim; `every` is each x of its setting, `numbers` make the means."""
    series: SeriesOfStrategies = {}
    for strategy in claim.strategies():
        for x in claim.xs(every):
            keys = tuple(claim.sides(strategy, x))
            if missing := [key for key in keys if key not in means]:
                return _finding(claim, None, "not judged", f"This run has no {_named(missing[0])}.")
            series.setdefault(strategy, []).append((x, _number(claim, *(means[k] for k in keys))))
    holds, ours, where = JUDGES[claim.kind](series, claim.expected(), claim.tolerance)
    single = _mean_of_ratios(claim, ours, series, numbers or {})
    told = number_text(ours, claim.metric, claim.form())
    number = f"{told} ({where}{_kind_of_ratio(claim, single)})"
    if holds:
        return _finding(claim, ours, "holds", f"{number} is {_wanted(claim)}.", single)
    why = f"{number} is not {_wanted(claim)}. {claim.why}".strip()
    return _finding(claim, ours, "does not hold", why, single)


def _mean_of_ratios(
    claim: Claim, ours: float, series: SeriesOfStrategies, numbers: BySeed
) -> float | None:
    """Where our number stands: the mean over topologies of the ratios on each of them."""
    if claim.form() != "factor":
        return None
    for strategy, rows in series.items():
        for x, number in rows:
            if number == ours:
                above, below = (numbers.get(key, {}) for key in claim.sides(strategy, x))
                ratios = [above[seed] / of for seed, of in below.items() if seed in above and of]
                return fmean(ratios) if ratios and len(ratios) == len(below) else None
    return None


def _kind_of_ratio(claim: Claim, single: float | None) -> str:
    if claim.form() != "factor":
        return ""
    words = "; a ratio of sums over seeds"
    return words if single is None else f"{words}, the mean of their ratios is {single:.3f}"


def _number(claim: Claim, mean: float, other: float = nan) -> float:
    if claim.minus:
        return mean - other
    if claim.over:
        return mean / other if other else nan
    return mean


def _wanted(claim: Claim) -> str:
    """What the verdict is about, as the end of a sentence."""
    margin = number_text(claim.tolerance, claim.metric, "factor" if claim.over else "margin")
    if claim.kind == "flat":
        return f"flat within {margin}"
    if claim.kind == "peaking":
        return "a peak that it falls from" + (f" (by {margin})" if claim.tolerance else "")
    if claim.kind in TRENDS:
        return f"{claim.kind} at every step" + (f" (within {margin})" if claim.tolerance else "")
    expected = number_text(claim.expected(), claim.metric, claim.form())
    return f"{claim.kind} {expected}" + (f" (within {margin})" if claim.tolerance else "")


def _finding(
    claim: Claim, ours: float | None, verdict: Verdict, why: str, single: float | None = None
) -> Finding:
    return Finding(claim.id, claim.section, claim.text, claim.paper, ours, verdict, why, single)


def _named(key: MeanKey) -> str:
    place = f" in setting {key.setting}" if key.setting else ""
    return f"{key.metric} of {key.strategy} at {x_text(key.x)}{place}"
