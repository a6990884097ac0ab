"""How do strategies compare, at a glance? Delivery and on-time ratio, with confidence intervals.

Against the first swept parameter where the traces come from a sweep (a line per strategy and
setting of the others), else as a bar per strategy over its runs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tidings.pipeline.analyse.intervals import interval_factor, swept
from tidings.pipeline.analyse.job import Analysis
from tidings.studies.figures.formats import save
from tidings.studies.figures.looks import DOTS, dot_size, width

PANELS = {"delivery_ratio": "Delivered", "on_time_ratio": "Delivered in time"}

# What an axis is called; a parameter that is not here goes by its name, which has its unit.
AXIS_NAMES = {
    "links.failure_probability": "probability that a link fails, per link and epoch",
    "links.loss_ratio": "loss per transmission",
    "workload.rate_per_s": "messages per second and publisher",
    "workload.deadline_factor": "deadline, in shortest delays",
    "topology.degree": "links per broker",
    "topology.brokers": "brokers",
}


def draw(analysis: Analysis, path: Path) -> Path:
    """The picture of an analysis, in the format that the path ends in."""
    return save(picture(analysis), path)


def picture(analysis: Analysis) -> Figure:
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    axes = figure.subplots(1, len(PANELS), sharey=True)
    study = analysis.study
    horizontal = _horizontal(study) if study is not None else None
    for panel, letter, (metric, title) in zip(axes, "ab", PANELS.items(), strict=True):
        if study is not None and horizontal is not None:
            _lines(panel, study, horizontal, metric)
        else:
            _bars(panel, analysis.strategies, metric)
        panel.set_title(f"({letter}) {title}")
        panel.set_ylabel("share of (message, interested subscription)")
        panel.grid(axis="y", alpha=0.3)
        panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.suptitle(_title(study))
    return figure


def _lines(panel: Axes, study: pd.DataFrame, horizontal: str, metric: str) -> None:
    others = [name for name in swept(study) if name != horizontal]
    for number, (key, rows) in enumerate(study.groupby(["strategy", *others], dropna=False)):
        label = ", ".join([str(key[0]), *map("{} = {}".format, others, key[1:])])
        spread = rows[f"{metric}_interval"]  # NaN, where there is one seed, draws nothing
        panel.errorbar(
            rows[horizontal],
            rows[metric],
            yerr=spread,
            label=label,
            marker=DOTS[number % len(DOTS)],
            markersize=dot_size(number),
            linewidth=width(number),
            elinewidth=1.0,
            capsize=3,
        )
    panel.set_xlabel(AXIS_NAMES.get(horizontal, horizontal))
    panel.legend()


def _bars(panel: Axes, strategies: pd.DataFrame, metric: str) -> None:
    grouped = strategies.groupby("strategy")[metric]
    means, spread = grouped.mean(), grouped.std() * interval_factor(grouped.count())
    bars = panel.bar(list(means.index), means, yerr=spread, capsize=4)
    panel.bar_label(bars, labels=[f"{mean:.1%}" for mean in means], label_type="center")
    panel.set_xlabel("strategy")


def _horizontal(study: pd.DataFrame) -> str | None:
    numeric = [name for name in swept(study) if pd.api.types.is_numeric_dtype(study[name])]
    return numeric[0] if numeric else None


def _title(study: pd.DataFrame | None) -> str:
    if study is None:
        return "Delivery per strategy (bars: 95 % confidence over runs)"
    seeds = " to ".join(sorted({str(study["seeds"].min()), str(study["seeds"].max())}))
    names = ", ".join(sorted(set(study["study"])))
    return f"{names}: mean over {seeds} seeds, 95 % confidence intervals"
