"""How does a study get its numbers? Its sweep runs what is missing; the pipeline measures it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pandas as pd

from tidings.pipeline.session import StartSpark
from tidings.pipeline.sweep.grid import Point, Progress, points_of
from tidings.pipeline.sweep.job import SweepReport, sweep
from tidings.pipeline.sweep.measure import measure, over_topologies, placed
from tidings.pipeline.transforms.metrics import STRATEGY
from tidings.studies.about import SUBSCRIBER
from tidings.studies.claims import BySeed, MeanKey
from tidings.studies.report import StudyResult, result_of
from tidings.studies.spec import Study

# Takes the name of some work, and gives what is called with how much of it is done.
ShowProgress = Callable[[str], AbstractContextManager[Progress]]


def run(
    study: Study, out: Path, start_spark: StartSpark, show_progress: ShowProgress
) -> tuple[SweepReport, StudyResult | None]:
    """Simulate and measure what is missing, then argue; the same call goes on after an interrupt.

    There is no result if it was interrupted or nothing ran; what failed is missing in it.
    """
    name, points = study.spec.name, points_of(study.spec)
    with show_progress(name) as tell:
        report = sweep(study.spec, out, start_spark, tell, points)
    if report.interrupted or len(report.failures) == report.points:
        return report, None
    with show_progress(f"{name}, metrics") as tell:
        measured = measure(start_spark, out, name, points, study.question(), tell)
    labels = study.axis.labels if study.about.x == SUBSCRIBER else None
    in_figure = rows_in_figure(measured, study, points)
    lines = lines_of(study, points)
    table = over_topologies(in_figure, lines, labels)
    numbers = numbers_by_seed(placed(in_figure, lines, labels), points)
    return report, result_of(study, points, table, numbers)


def numbers_by_seed(rows: pd.DataFrame, points: list[Point]) -> BySeed:
    """What each mean is the mean of."""
    seeds = {point.name: point.scenario.run.seed for point in points}
    found: dict[MeanKey, dict[int, float]] = {}
    for row in rows.to_dict("records"):
        key = MeanKey(row["setting"], row["strategy"], row["metric"], row["x"])
        found.setdefault(key, {})[seeds[row["run"]]] = row["value"]
    return found


def rows_in_figure(measured: pd.DataFrame, study: Study, points: list[Point]) -> pd.DataFrame:
    """Without the metrics of runs that are not in the part of the grid that the figure shows."""
    outside = {
        (point.name, metric)
        for metric, part in study.about.only.items()
        for point in points
        if any(point.parameters[name] != value for name, value in part.items())
    }
    keys = zip(measured["run"], measured["metric"], strict=True)
    return measured[[key not in outside for key in keys]]


def lines_of(study: Study, points: list[Point]) -> pd.DataFrame:
    """Where each run belongs in the figure; a series has its own x."""
    about = study.about
    lines = pd.DataFrame(
        {
            "run": [point.name for point in points],
            "setting": [point.parameters.get("setting", "") for point in points],
            "x": [float(point.parameters.get(about.x, "nan")) for point in points],
        }
    )
    if about.lines == STRATEGY:  # which trace rows tell; other parameters only the point knows
        return lines
    return lines.assign(strategy=[str(point.parameters[about.lines]) for point in points])
