"""What does a study look like? Our curves with confidence bars, and the paper's values as marks.

Colours are strategies, or settings where there is one strategy; dashes are settings. A star is a
value that the paper states, a triangle one that it states as a bound; differences and ratios have
no place of their own in a figure.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from tidings.pipeline.jobs.analyse import replaced
from tidings.pipeline.jobs.picture import AXIS_NAMES, DOTS_PER_INCH
from tidings.studies.check import LATENESS
from tidings.studies.report import Mean, Result
from tidings.studies.spec import Study
from tidings.studies.wording import SHARES, TITLES

PANEL_INCHES = (4.6, 4.4)
DASHES = ("-", "--", ":", "-.")
X_NAMES = AXIS_NAMES | {
    LATENESS: "delay over deadline",
    "workload.content.rate_per_minute": "publishing rate, messages per minute and publisher",
    "broker.benefit.weight": "r, weight of the benefit",
}
BORDER = 0.03  # beyond 0 and 1 on an axis of shares, though a confidence bar may go on
MAX_BARS = 12  # on one curve; confidence of a denser one is a band
MARKS = {"near": "*", "at least": "^", "at most": "v"}
MARK_WORDS = {"near": "stated", "at least": "at least", "at most": "at most"}


def draw(study: Study, result: Result, path: Path) -> Path:
    """The figure of a study, as PNG."""
    metrics = study.about.metrics
    width, height = PANEL_INCHES
    figure = Figure(figsize=(max(width * len(metrics), 7.0), height + 1.4), layout="constrained")
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for panel, metric in zip(panels, metrics, strict=True):
        _draw_curves(panel, study, [mean for mean in result.points if mean.metric == metric])
        _draw_marks(panel, study, metric)
        _name_axes(panel, study, metric)
    lines, labels = panels[0].get_legend_handles_labels()
    marks = _legend_of_marks(study)
    figure.legend(
        [*lines, *marks],
        [*labels, *(str(mark.get_label()) for mark in marks)],
        loc="outside lower center",
        ncols=4,
    )
    about = study.about
    title = f"{about.title} ({about.paper}, {about.figure})\n{result.study}, {result.made_by()}"
    figure.suptitle(f"{title}\nmeans over topologies, with 95 % confidence", fontsize="medium")
    return replaced(path, lambda draft: figure.savefig(draft, dpi=DOTS_PER_INCH, format="png"))


def _draw_curves(panel: Axes, study: Study, means: list[Mean]) -> None:
    curves = defaultdict(list)
    for mean in means:
        curves[mean.key().setting, mean.strategy].append(mean)
    for (setting, strategy), rows in curves.items():
        colour = _colour(study, strategy, setting)
        xs, ys = [mean.x for mean in rows], np.array([mean.mean for mean in rows])
        spread = np.array([mean.ci or 0.0 for mean in rows])
        panel.plot(
            xs,
            ys,
            label=f"{strategy}, {setting}" if setting else strategy,
            color=colour,
            linestyle=DASHES[study.settings().index(setting) % len(DASHES)],
            marker="." if len(rows) <= MAX_BARS else "",
        )
        if len(rows) <= MAX_BARS:  # faint, as many may share an x
            panel.errorbar(xs, ys, yerr=spread, color=colour, fmt="none", capsize=2, alpha=0.4)
        else:
            panel.fill_between(xs, ys - spread, ys + spread, color=colour, alpha=0.15, linewidth=0)


def _draw_marks(panel: Axes, study: Study, metric: str) -> None:
    for claim in study.claims:
        if claim.metric != metric or claim.form() != "value" or claim.kind not in MARKS:
            continue
        xs = claim.xs(study.xs(claim.setting))
        for strategy in claim.strategies():
            panel.plot(
                xs,
                [claim.expected()] * len(xs),
                linestyle="",
                marker=MARKS[claim.kind],
                markersize=11,
                markerfacecolor="none",
                markeredgecolor=_colour(study, strategy, claim.setting),
                zorder=3,
            )


def _name_axes(panel: Axes, study: Study, metric: str) -> None:
    part = study.about.only.get(metric, {}).items()
    of = [f"{name.rpartition('.')[2]}: {value}" for name, value in part]
    panel.set_title(", ".join([TITLES[metric], *of]))
    panel.set_xscale(study.about.scale)
    panel.set_xlabel(X_NAMES.get(study.about.x, study.about.x))
    panel.grid(axis="y", alpha=0.3)
    bottom, top = panel.get_ylim()  # of no metric can there be less than nothing
    if metric in SHARES:
        panel.yaxis.set_major_formatter(PercentFormatter(1.0))
        panel.set_ylim(max(bottom, -BORDER), min(top, 1.0 + BORDER))
        return
    panel.set_ylim(max(bottom, 0.0), top)
    if metric.endswith("_s"):
        panel.set_ylabel("seconds")


def _legend_of_marks(study: Study) -> list[Line2D]:
    kinds = {claim.kind for claim in study.claims if claim.form() == "value"}
    return [
        Line2D([], [], linestyle="", marker=MARKS[kind], markersize=9, markerfacecolor="none",
               color="black", label=f"{study.about.paper}: {MARK_WORDS[kind]}")
        for kind in MARKS
        if kind in kinds
    ]  # fmt: skip


def _colour(study: Study, strategy: str, setting: str) -> str:
    known = list(dict.fromkeys(s for each in study.settings() for s in study.strategies(each)))
    return f"C{known.index(strategy) if len(known) > 1 else study.settings().index(setting)}"
