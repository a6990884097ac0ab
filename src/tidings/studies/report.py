"""What has a study shown? One object for people and scripts: its points, and its claims judged."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from msgspec import UNSET, Struct, UnsetType

from tidings.files.folders import replaced
from tidings.pipeline.sweep.grid import Point
from tidings.studies.claims import BySeed, Finding, MeanKey, judge
from tidings.studies.spec import Study
from tidings.studies.wording import X


class Mean(Struct, frozen=True):
    """One point of the figure: a mean over topologies."""

    strategy: str
    x: X  # a number; or the label of a subscription, or "mean" over them
    metric: str
    mean: float
    ci: float | None  # half the width of the 95 % confidence interval; one run has none
    runs: int  # one on each topology
    setting: str | UnsetType = UNSET  # only in a study that has settings

    def key(self) -> MeanKey:
        return MeanKey(self.setting or "", self.strategy, self.metric, self.x)


class StudyResult(Struct, frozen=True):
    study: str
    quick: bool
    title: str
    paper: str
    figure: str
    topologies: int
    seconds: float  # of publishing, in each run
    points: list[Mean]
    claims: list[Finding]

    def verdicts(self) -> str:
        """How many claims hold."""
        found = [claim.verdict for claim in self.claims]
        judged = len(found) - found.count("not judged")
        words = f"{found.count('holds')} of {judged} claims hold"
        return words if judged == len(found) else f"{words}, {len(found) - judged} not judged"

    def made_by(self) -> str:
        """How much lies behind the numbers; a seed draws what its topology leaves to chance."""
        kind = "quick run" if self.quick else "full run"
        length = f"{self.seconds / 60:g} min of simulated time"
        if self.topologies == 1:
            return f"{kind}: 1 seed, {length}"
        return f"{kind}: {self.topologies} seeds, {length} each"


def result_of(
    study: Study, points: list[Point], table: pd.DataFrame, numbers: BySeed | None = None
) -> StudyResult:
    """The argument, from the means over topologies of `pipeline.sweep.measure`, and what they are
    means of."""
    about, rows = study.about, table[table["metric"].isin(study.about.metrics)]
    found = {mean.key(): mean for mean in map(_mean, rows.to_dict("records"))}
    ordered = [found[key] for key in _keys(study) if key in found]
    means = {mean.key(): mean.mean for mean in ordered}
    return StudyResult(
        study.name,
        study.quick,
        about.title,
        about.paper,
        about.figure,
        len({point.scenario.run.seed for point in points}),
        points[0].scenario.run.seconds,
        ordered,
        [judge(claim, means, study.xs(claim.setting), numbers) for claim in study.claims],
    )


def write(result: StudyResult, path: Path) -> Path:
    """The object as JSON; the file is whole or not there."""
    text = msgspec.json.format(msgspec.json.encode(result), indent=1)
    return replaced(path, lambda draft: draft.write_bytes(text))


def _mean(row: dict[str, Any]) -> Mean:
    ci = None if isnan(row["ci"]) else row["ci"]
    setting = row["setting"] or UNSET
    return Mean(row["strategy"], row["x"], row["metric"], row["mean"], ci, row["runs"], setting)


def _keys(study: Study) -> list[MeanKey]:
    """Every point that the figure can have, in the order of the file."""
    return [
        MeanKey(setting, strategy, metric, x)
        for metric in study.about.metrics
        for setting in study.settings()
        for strategy in study.strategies(setting)
        for x in study.places(setting)
    ]
