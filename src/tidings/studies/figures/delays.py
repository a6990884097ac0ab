"""How long did messages take, strategy by strategy? The cumulative distribution of their delays.

Runs of one strategy are read at the same places, so their curve is the mean of theirs. Where there
are few deadlines, they are drawn.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tidings.pipeline.analyse.job import Analysis
from tidings.studies.figures.durations import draw_deadlines, mark_decades, mark_durations
from tidings.studies.figures.formats import save
from tidings.studies.figures.looks import DASHES, width


def draw_delays(analysis: Analysis, path: Path) -> Path:
    """The picture of an analysis' delays, in the format that the path ends in."""
    return save(delay_picture(analysis), path)


def delay_picture(analysis: Analysis) -> Figure:
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    panel = figure.subplots()
    shares = analysis.delay_cdf.groupby(["strategy", "at"])["share"].mean()
    for number, (strategy, curve) in enumerate(shares.groupby("strategy")):
        panel.plot(
            curve.index.get_level_values("at"),
            curve,
            label=str(strategy),
            drawstyle="steps-post",
            linestyle=DASHES[number % len(DASHES)],
            linewidth=width(number),
        )
    draw_deadlines(panel, analysis.subscribers["deadline_s"].dropna().tolist(), upright=True)
    panel.set_xscale("log")
    mark_decades(panel.xaxis)
    mark_durations(panel.xaxis)
    panel.set_ylim(0, 1.02)
    panel.set_xlabel("delay from publisher to subscriber")
    panel.set_ylabel("share of what was delivered")
    panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    panel.grid(alpha=0.3)
    if len(shares):
        panel.legend(title="strategy")
    runs = analysis.strategies["run"].nunique()
    figure.suptitle(f"Delays of delivered messages ({runs} {'run' if runs == 1 else 'runs'})")
    return figure
