"""Metrics as a person reads them: percentages, milliseconds, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.cli.screens.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 60  # on a screen; files and --json have all


class MetricFormat(NamedTuple):
    """How a metric is printed: its heading with the unit, a factor, and decimals."""

    heading: str
    factor: float
    decimals: int


METRICS = {
    "delivery_ratio": MetricFormat("delivered\n%", 100, 2),
    "on_time_ratio": MetricFormat("in time\n%", 100, 2),
    "earnings": MetricFormat("earned", 1, 0),
    "packets_per_subscriber": MetricFormat("packets per\nsubscriber", 1, 2),
    "deadline_s": MetricFormat("deadline\nms", 1000, 1),
    "delay_p50_s": MetricFormat("median\nms", 1000, 1),
    "delay_p95_s": MetricFormat("95 %\nms", 1000, 1),
}


def study_table(title: str, study: pd.DataFrame) -> Sheet:
    """A sweep: strategies and swept parameters, means over seeds ± half a confidence interval."""
    labels = list(study.columns[: study.columns.get_loc("seeds") + 1])
    labels = [name for name in labels if "." in name or study[name].nunique() > 1]
    seeds = "" if "seeds" in labels else f" over {study['seeds'].iloc[0]} seeds"
    return metrics_table(f"{title}: means{seeds} ± 95 % confidence", records(study), labels)


def metrics_table(title: str, rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> Sheet:
    """The labels and all metrics of some rows, with ± half an interval where there is one."""
    metrics = [name for name in METRICS if rows and name in rows[0]]
    sheet = Sheet(title)
    for label in labels:
        is_text = any(isinstance(row[label], str) for row in rows)
        add = sheet.add_texts if is_text else sheet.add_numbers
        add(label.rpartition(".")[2].replace("_", " "))
    sheet.add_numbers(*(METRICS[metric].heading for metric in metrics))
    for row in rows[:MAX_ROWS]:
        cells = [_label(row[label]) for label in labels]
        sheet.add_row(*cells, *(_cell(row, metric) for metric in metrics))
    if len(rows) > MAX_ROWS:
        sheet.caption = f"the first {MAX_ROWS} of {len(rows)} rows"
    return sheet


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame for JSON."""
    rows: list[dict[str, Any]] = frame.to_dict("records")
    return rows


def _label(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(row: Mapping[str, Any], metric: str) -> str:
    value, spread = row[metric], row.get(f"{metric}_interval")
    if value is None or isnan(value) or isinf(value):
        return "-"
    _, factor, decimals = METRICS[metric]
    text = f"{value * factor:.{decimals}f}"
    if spread is None or isnan(spread):
        return text
    return f"{text}±{spread * factor:.{decimals}f}"
