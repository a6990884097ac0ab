"""What does the y axis say? Its unit, and no more of it than can be.

No metric is below zero and no share is above one, so the axis ends there, even where a confidence
bar goes on. A logarithmic axis begins below the smallest mean, however far the bar goes down.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from tidings.pipeline.transforms.traffic import RATES
from tidings.studies.about import SUBSCRIBER, TIME, About
from tidings.studies.figures.durations import mark_decades, mark_durations
from tidings.studies.report import Mean
from tidings.studies.wording import SHARES, TITLES

BORDER = 0.03  # beyond 0 and 1 on an axis of shares
FROM_ZERO = (SUBSCRIBER, TIME)  # bars, and series that may hardly move
DECADE = 10.0


def scale_y(panel: Axes, about: About, metric: str, means: list[Mean]) -> None:
    if about.y_scale == "log":
        _limit_decades(panel, means)
    else:
        bottom, top = panel.get_ylim()
        least, most = (-BORDER, 1.0 + BORDER) if metric in SHARES else (0.0, top)
        panel.set_ylim(0.0 if about.x in FROM_ZERO else max(bottom, least), min(top, most))
    _mark(panel, metric)


def _limit_decades(panel: Axes, means: list[Mean]) -> None:
    _, top = panel.get_ylim()
    panel.set_yscale("log", nonpositive="clip")
    mark_decades(panel.yaxis)
    if seen := [mean.mean for mean in means if mean.mean > 0]:
        panel.set_ylim(min(seen) / DECADE**0.5, max(top, max(seen) * DECADE**0.25))


def _mark(panel: Axes, metric: str) -> None:
    """Numbers in the unit that people use."""
    factor, unit, name = 1.0, "", TITLES[metric]
    if metric in SHARES:
        factor, unit = 100.0, " %"
    elif metric in RATES:
        factor, name = 0.001, f"{name}, kB per second on all links together"
    panel.set_ylabel(name)
    if metric.endswith("_s") and metric not in RATES:
        mark_durations(panel.yaxis)
        return
    text = FuncFormatter(lambda value, _: f"{round(factor * value, 9):,.10g}{unit}")
    panel.yaxis.set_major_formatter(text)
