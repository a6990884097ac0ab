"""What does a person see of an analysis? The short tables; files and --json have all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from tidings.cli.screens.sheet import Sheet
from tidings.cli.screens.tables import metrics_table, records, study_table

if TYPE_CHECKING:
    import pandas as pd

    from tidings.pipeline.analyse.job import Analysis

MOST_TOPICS = 12  # more would push what matters off the screen
MOST_FILES = 5


def show(console: Console, analysis: Analysis, traces: Path) -> None:
    """A sweep as means over seeds; else each run, and if there is one, all of it."""
    study = analysis.study
    if study is not None:
        console.print(study_table(", ".join(sorted(set(study["study"]))), study))
    else:
        console.print(metrics_table("Runs", records(analysis.strategies), ["run", "strategy"]))
        if analysis.strategies["run"].nunique() == 1:
            _show_run(console, analysis)
        for drop in records(analysis.drops):
            what = f"dropped ({drop['reason']}): {drop['count']}"
            _say(console, f"{drop['run']}, {drop['strategy']}, {what}")
    _show_doubts(console, analysis)
    runs = analysis.strategies["run"].nunique()
    _say(console, f"Read {runs} {'run' if runs == 1 else 'runs'} from {traces}.")


def _show_run(console: Console, analysis: Analysis) -> None:
    from tidings.pipeline.transforms.reliability import SYSTEM  # loads Spark, as the analysis has

    topics, labels = analysis.topics, ["topic", "expected"]
    if 1 < len(topics) <= MOST_TOPICS:
        console.print(metrics_table("Topics", records(topics), labels))
    labels = ["subscription", "expected"]
    console.print(metrics_table("Subscribers", records(analysis.subscribers), labels))
    if len(analysis.costs):
        console.print(_cost_table(analysis.costs))
    system = analysis.reliability[analysis.reliability["level"] == SYSTEM]
    for row in records(system):
        both = f"{row['reliability']:.2%}, in time {row['on_time_reliability']:.2%}"
        _say(console, f"Reliability of the system, {row['strategy']}: {both}")


def _cost_table(costs: pd.DataFrame) -> Sheet:
    from tidings.pipeline.transforms.cost import PARTS

    sheet = Sheet("On all links, per delivery")
    sheet.add_texts("for")
    sheet.add_numbers("frames", "bytes")
    by_part = {row["part"]: row for row in records(costs)}
    for part in PARTS:
        if row := by_part.get(part):
            sheet.add_row(
                part, _number(row["frames_per_delivery"]), _number(row["bytes_per_delivery"])
            )
    return sheet


def _show_doubts(console: Console, analysis: Analysis) -> None:
    """What a reader of the figures must know of the rows behind them."""
    if jumps := int(analysis.strategies["clock_jumps"].sum()):
        what = f"{jumps} deliveries lie before their publication by the brokers' clocks"
        _say(console, f"{what}; their delays are those that the messages tell.")
    if again := int(analysis.strategies["second_deliveries"].sum()):
        _say(console, f"{again} deliveries were a message's second to a subscription.")
    files = records(analysis.quarantined)
    for row in files[:MOST_FILES]:
        _say(console, f"Not read: {row['file']}: {row['reason']}")
    if len(files) > MOST_FILES:
        _say(console, f"Not read: {len(files) - MOST_FILES} more files; --json names them all.")


def _say(console: Console, words: str) -> None:
    console.print(words, soft_wrap=True, markup=False)  # names may have brackets


def _number(value: float) -> str:
    return "-" if value != value else f"{value:,.2f}"
