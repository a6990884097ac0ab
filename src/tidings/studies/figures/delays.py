"""How long did messages take, strategy by strategy? The cumulative distribution of their delays.

Runs of one strategy are read at the same places, so their curve is the mean of theirs.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tidings.files.folders import replaced
from tidings.pipeline.analyse.job import Analysis
from tidings.studies.figures.looks import DOTS_PER_INCH


def draw_delays(analysis: Analysis, path: Path) -> Path:
    """The picture of an analysis' delays, as PNG."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    panel = figure.subplots()
    shares = analysis.delay_cdf.groupby(["strategy", "at"])["share"].mean()
    for strategy, curve in shares.groupby("strategy"):
        places_ms = curve.index.get_level_values("at") * 1000
        panel.plot(places_ms, curve, label=str(strategy), drawstyle="steps-post")
    panel.set_xscale("log")
    panel.set_ylim(0, 1.02)
    panel.set_xlabel("delay from publisher to subscriber, ms")
    panel.set_ylabel("share of what was delivered")
    panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    panel.grid(alpha=0.3)
    if len(shares):
        panel.legend(title="strategy")
    runs = analysis.strategies["run"].nunique()
    figure.suptitle(f"Delays of delivered messages ({runs} {'run' if runs == 1 else 'runs'})")
    return replaced(path, lambda draft: figure.savefig(draft, dpi=DOTS_PER_INCH))
