"""What does a study look like? A panel for each metric: curves over x, or bars by subscriber.

Confidence is drawn with every mean, and what the paper states as marks; see `looks`. Deadlines are
drawn where an axis is delay. Settings are explained in the legend, in the words of the study.
"""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase
from textwrap import fill

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tidings.studies.about import DELAY, LATENESS, SUBSCRIBER, TIME
from tidings.studies.axes import deadlines_of
from tidings.studies.figures.bars import draw_bars
from tidings.studies.figures.curves import draw_curves
from tidings.studies.figures.durations import draw_deadlines, mark_durations
from tidings.studies.figures.formats import save
from tidings.studies.figures.looks import MAX_MARKS, legend_of_marks
from tidings.studies.figures.scales import scale_y
from tidings.studies.figures.strategies import AXIS_NAMES
from tidings.studies.report import StudyResult
from tidings.studies.spec import Study
from tidings.studies.wording import TITLES

PANEL_INCHES, WIDE_INCHES = (4.6, 4.4), (7.2, 4.4)  # wide: groups of bars, hours of a run
LEAST_WIDTH = 7.0
MOST_COLUMNS = 5  # of the legend
LETTERS_PER_INCH, COLUMN_INCHES = 12, 2.3  # of what is written below the panels
X_NAMES = AXIS_NAMES | {
    LATENESS: "delay over deadline",
    SUBSCRIBER: "subscriber and topic",
    DELAY: "delay",
    TIME: "published at, s since the run began",
    "workload.content.rate_per_minute": "publishing rate, messages per minute and publisher",
    "workload.payload_bytes": "payload of a message, bytes",
    "broker.benefit.weight": "r, weight of the benefit",
}


def draw(study: Study, result: StudyResult, path: Path) -> Path:
    """The figure of a study, in the format that the path ends in."""
    return save(picture(study, result), path)


def picture(study: Study, result: StudyResult) -> Figure:
    metrics, categories = study.about.metrics, study.about.x == SUBSCRIBER
    width, height = WIDE_INCHES if study.about.x in (SUBSCRIBER, TIME) else PANEL_INCHES
    size = (max(width * len(metrics), LEAST_WIDTH), height + 1.4)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for panel, metric in zip(panels, metrics, strict=True):
        means = [mean for mean in result.points if mean.metric == metric]
        (draw_bars if categories else draw_curves)(panel, study, metric, means)
        _draw_deadlines(panel, study, metric)
        _name_axes(panel, study, metric)
        scale_y(panel, study.about, metric, means)
    _write_legend(figure, study)
    figure.suptitle(_title(study, result), fontsize="medium")
    return figure


def _draw_deadlines(panel: Axes, study: Study, metric: str) -> None:
    upright = study.about.x == DELAY
    if upright or metric.startswith("delay_"):
        draw_deadlines(panel, deadlines_of(study.about, study.spec), upright)


def _write_legend(figure: Figure, study: Study) -> None:
    entries: dict[str, Artist] = {}
    for panel in figure.axes:  # a deadline may be in one of them only
        entries |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    entries |= {str(mark.get_label()): mark for mark in legend_of_marks(study)}
    columns = int(figure.get_figwidth() * LETTERS_PER_INCH)
    words = [fill(f"{name}: {text}", columns) for name, text in study.about.settings.items()]
    figure.legend(
        [*entries.values()],
        [*entries],
        loc="outside lower center",
        ncols=min(int(figure.get_figwidth() / COLUMN_INCHES), MOST_COLUMNS),
        title="\n".join(words) or None,
        title_fontsize="small",
        alignment="left",
    )


def _title(study: Study, result: StudyResult) -> str:
    about = study.about
    of = f", {about.subscriber}" if about.subscriber else ""
    title = f"{about.title}{of} ({about.origin()})\n{result.study}, {result.made_by()}"
    confidence = any(mean.ci is not None for mean in result.points)
    ends = ["means over seeds, with 95 % confidence"] if confidence else []
    ends += [result.verdicts()] if result.claims else []
    return "\n".join([title, "; ".join(ends)]) if ends else title


def _name_axes(panel: Axes, study: Study, metric: str) -> None:
    about = study.about
    part = about.only.get(metric, {}).items()
    of = [f"{name.rpartition('.')[2]}: {value}" for name, value in part]
    title = ", ".join([TITLES[metric], *of])
    letter = ascii_lowercase[about.metrics.index(metric)]
    panel.set_title(f"({letter}) {title}" if len(about.metrics) > 1 else title)
    if about.x != SUBSCRIBER:  # whose groups have their places and names already
        panel.set_xscale(about.scale)
    if about.scale == "log":
        _mark_places(panel, study)
    if about.x == DELAY:
        mark_durations(panel.xaxis)
    panel.set_xlabel(X_NAMES.get(about.x, about.x))
    panel.grid(axis="y", alpha=0.3)
    panel.set_axisbelow(True)


def _mark_places(panel: Axes, study: Study) -> None:
    """The ticks of a logarithmic x axis: each place that the study has, where there is room."""
    places = sorted({float(x) for each in study.settings() for x in study.xs(each)})
    if places[0] > 0 and len(places) <= MAX_MARKS:
        panel.xaxis.set_major_locator(FixedLocator(places))
        panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
