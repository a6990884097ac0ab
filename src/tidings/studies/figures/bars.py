"""How does a metric compare between subscribers? A group of bars for each, and one for their mean.

On a logarithmic axis nothing has a height: there are dots with their intervals instead of bars, and
0 is written as such.
"""

from __future__ import annotations

from matplotlib.axes import Axes

from tidings.pipeline.sweep.measure import MEAN
from tidings.studies.figures.looks import (
    SMALLEST,
    Line,
    colour,
    dot,
    draw_marks,
    filling,
    hatch,
    label,
)
from tidings.studies.report import Mean
from tidings.studies.spec import Study
from tidings.studies.wording import X

GROUP = 0.8  # of the distance between two groups, what the bars of one take
MEAN_APART = 0.4  # further from the others


def draw_bars(panel: Axes, study: Study, metric: str, means: list[Mean]) -> None:
    groups = list(dict.fromkeys(x for each in study.settings() for x in study.xs(each)))
    centres: dict[X, float] = {x: float(number) for number, x in enumerate(groups)}
    centres[MEAN] = len(groups) + MEAN_APART
    lines = [(each, name) for each in study.settings() for name in study.strategies(each)]
    width = GROUP / len(lines)

    def place(line: Line, x: X) -> float:
        return centres[x] + (lines.index(line) - (len(lines) - 1) / 2) * width

    for line in lines:
        rows = [mean for mean in means if (mean.key().setting, mean.strategy) == line]
        _draw_line(panel, study, line, [place(line, mean.x) for mean in rows], rows, width)
    draw_marks(panel, study, metric, place, filled="white")
    panel.axvline(len(groups) - 0.5 + MEAN_APART / 2, color="grey", linewidth=0.5)
    panel.set_xticks([*centres.values()], [str(x) for x in centres])
    panel.set_xlim(-0.5, len(groups) + MEAN_APART + 0.5)


def _draw_line(
    panel: Axes, study: Study, line: Line, at: list[float], rows: list[Mean], width: float
) -> None:
    if study.about.y_scale == "log":
        _draw_dots(panel, study, line, at, rows)
        return
    panel.bar(
        at,
        [mean.mean for mean in rows],
        width,
        yerr=[mean.ci or 0.0 for mean in rows],
        label=label(line),
        color=colour(study, line),
        hatch=hatch(study, line),
        edgecolor="white",
        linewidth=0.3,
        error_kw={"capsize": 2, "elinewidth": 0.8, "ecolor": "0.25"},
    )


def _draw_dots(panel: Axes, study: Study, line: Line, at: list[float], rows: list[Mean]) -> None:
    panel.errorbar(
        at,
        [mean.mean for mean in rows],
        yerr=[mean.ci or 0.0 for mean in rows],
        label=label(line),
        color=colour(study, line),
        fmt=dot(study, line),
        markerfacecolor=filling(study, line),
        markersize=SMALLEST + 2,
        capsize=2,
        elinewidth=0.8,
    )
    for x, mean in zip(at, rows, strict=True):
        if mean.mean == 0:
            written = panel.text(x, 0.01, "0", ha="center", va="bottom", fontsize=7)
            written.set_transform(panel.get_xaxis_transform())  # y: shares of the panel's height
            written.set_color(colour(study, line))
