"""How does a metric go over x? A curve for each line, with its confidence.

Over time a curve is a staircase, as each mean is that of a stretch, and it has a gap where nothing
arrived.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from matplotlib.axes import Axes

from tidings.studies.about import TIME
from tidings.studies.figures.looks import (
    MAX_MARKS,
    Line,
    colour,
    dash,
    dot,
    dot_size,
    draw_marks,
    filling,
    label,
    rank,
    width,
)
from tidings.studies.report import Mean
from tidings.studies.spec import Study
from tidings.studies.wording import X


def draw_curves(panel: Axes, study: Study, metric: str, means: list[Mean]) -> None:
    curves: dict[Line, dict[X, Mean]] = defaultdict(dict)
    for mean in means:
        curves[mean.key().setting, mean.strategy][mean.x] = mean
    for line, found in curves.items():
        xs = study.xs(line[0]) if study.about.x == TIME else tuple(found)
        _draw_curve(panel, study, line, xs, found)
    draw_marks(panel, study, metric, lambda _, x: float(x))


def _draw_curve(
    panel: Axes, study: Study, line: Line, xs: tuple[X, ...], found: dict[X, Mean]
) -> None:
    in_time, shade = study.about.x == TIME, colour(study, line)
    at = [float(x) for x in xs]
    ys = np.array([found[x].mean if x in found else np.nan for x in xs])
    spread = np.array([(found[x].ci or 0.0) if x in found else np.nan for x in xs])
    panel.plot(
        at,
        ys,
        label=label(line),
        color=shade,
        linestyle=dash(study, line),
        marker=dot(study, line) if len(xs) <= MAX_MARKS else "",
        markersize=dot_size(rank(study, line)),
        markerfacecolor=filling(study, line),
        linewidth=width(rank(study, line)),
        drawstyle="steps-post" if in_time else "default",
    )
    if len(xs) <= MAX_MARKS:  # faint, as many may share an x
        panel.errorbar(at, ys, yerr=spread, color=shade, fmt="none", capsize=2, alpha=0.4)
    elif np.nanmax(spread, initial=0.0) > 0:
        band = panel.fill_between(
            at, ys - spread, ys + spread, alpha=0.15, step="post" if in_time else None
        )
        band.set(color=shade, linewidth=0)
