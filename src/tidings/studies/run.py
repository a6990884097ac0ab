"""How does a study get its numbers? Its sweep runs what is missing; the pipeline measures it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pandas as pd

from tidings.pipeline.sweep.grid import Point, points_of
from tidings.pipeline.sweep.job import Progress, Report, sweep
from tidings.pipeline.sweep.measure import STRATEGY, Session, measure, over_topologies
from tidings.studies.about import SUBSCRIBER
from tidings.studies.report import Result, result_of
from tidings.studies.spec import Study

# Named work, and a way to tell how much of it is done.
Watch = Callable[[str], AbstractContextManager[Progress]]


def run(study: Study, out: Path, session: Session, watch: Watch) -> tuple[Report, Result | None]:
    """Simulate and measure what is missing, then argue; the same call goes on after an interrupt.

    There is no result if it was interrupted or nothing ran; what failed is missing in it.
    """
    name, points = study.spec.name, points_of(study.spec)
    with watch(name) as tell:
        report = sweep(study.spec, out, session, tell, points)
    if report.interrupted or len(report.failures) == report.points:
        return report, None
    with watch(f"{name}, metrics") as tell:
        measured = measure(session, out, name, points, study.question(), tell)
    shown, lines = shown_of(measured, study, points), lines_of(study, points)
    table = over_topologies(
        shown, lines, study.axis.labels if study.about.x == SUBSCRIBER else None
    )
    return report, result_of(study, points, table)


def shown_of(measured: pd.DataFrame, study: Study, points: list[Point]) -> pd.DataFrame:
    """Without metrics of runs that lie outside the part of the grid that the figure shows."""
    outside = {
        (point.name, metric)
        for metric, part in study.about.only.items()
        for point in points
        if any(point.parameters[name] != value for name, value in part.items())
    }
    keys = zip(measured["run"], measured["metric"], strict=True)
    return measured[[key not in outside for key in keys]]


def lines_of(study: Study, points: list[Point]) -> pd.DataFrame:
    """Where each run belongs in the figure; a course finds its x itself."""
    about = study.about
    lines = pd.DataFrame(
        {
            "run": [point.name for point in points],
            "setting": [point.parameters.get("setting", "") for point in points],
            "x": [float(point.parameters.get(about.x, "nan")) for point in points],
        }
    )
    if about.lines == STRATEGY:
        return lines
    return lines.assign(strategy=[str(point.parameters[about.lines]) for point in points])
