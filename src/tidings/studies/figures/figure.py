"""What does a study look like? A panel for each metric: curves over x, or bars by subscriber.

Confidence is drawn with every mean, and what the paper states as marks; see `looks`.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidings.files.folders import replaced
from tidings.studies.about import DELAY, LATENESS, SUBSCRIBER, TIME
from tidings.studies.figures.bars import draw_bars
from tidings.studies.figures.curves import draw_curves
from tidings.studies.figures.looks import DOTS_PER_INCH, legend_of_marks
from tidings.studies.figures.scales import scale_y
from tidings.studies.figures.strategies import AXIS_NAMES
from tidings.studies.report import StudyResult
from tidings.studies.spec import Study
from tidings.studies.wording import TITLES

PANEL_INCHES, WIDE_INCHES = (4.6, 4.4), (7.2, 4.4)  # wide: groups of bars, hours of a run
LEAST_WIDTH = 7.0
X_NAMES = AXIS_NAMES | {
    LATENESS: "delay over deadline",
    SUBSCRIBER: "subscriber and topic",
    DELAY: "delay, s",
    TIME: "published at, s since the run began",
    "workload.content.rate_per_minute": "publishing rate, messages per minute and publisher",
    "workload.payload_bytes": "payload of a message, bytes",
    "broker.benefit.weight": "r, weight of the benefit",
}


def draw(study: Study, result: StudyResult, path: Path) -> Path:
    """The figure of a study, as PNG."""
    metrics, categories = study.about.metrics, study.about.x == SUBSCRIBER
    width, height = WIDE_INCHES if study.about.x in (SUBSCRIBER, TIME) else PANEL_INCHES
    size = (max(width * len(metrics), LEAST_WIDTH), height + 1.4)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for panel, metric in zip(panels, metrics, strict=True):
        means = [mean for mean in result.points if mean.metric == metric]
        (draw_bars if categories else draw_curves)(panel, study, metric, means)
        _name_axes(panel, study, metric)
        scale_y(panel, study.about, metric, means)
    lines, labels = panels[0].get_legend_handles_labels()
    marks = legend_of_marks(study)
    figure.legend(
        [*lines, *marks],
        [*labels, *(str(mark.get_label()) for mark in marks)],
        loc="outside lower center",
        ncols=4,
    )
    figure.suptitle(_title(study, result), fontsize="medium")
    return replaced(path, lambda draft: figure.savefig(draft, dpi=DOTS_PER_INCH, format="png"))


def _title(study: Study, result: StudyResult) -> str:
    about = study.about
    of = f", {about.subscriber}" if about.subscriber else ""
    title = f"{about.title}{of} ({about.origin()})\n{result.study}, {result.made_by()}"
    confidence = any(mean.ci is not None for mean in result.points)
    return f"{title}\nmeans over seeds, with 95 % confidence" if confidence else title


def _name_axes(panel: Axes, study: Study, metric: str) -> None:
    part = study.about.only.get(metric, {}).items()
    of = [f"{name.rpartition('.')[2]}: {value}" for name, value in part]
    panel.set_title(", ".join([TITLES[metric], *of]))
    if study.about.x != SUBSCRIBER:  # whose groups have their places and names already
        panel.set_xscale(study.about.scale)
    panel.set_xlabel(X_NAMES.get(study.about.x, study.about.x))
    panel.grid(axis="y", alpha=0.3)
    panel.set_axisbelow(True)
