"""A study as a person reads it: a table for each metric, and the claims with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from tidings.cli.screens.sheet import Sheet
from tidings.studies.claims import Finding
from tidings.studies.report import Mean, StudyResult
from tidings.studies.wording import TITLES, Unit, X, unit, x_text

MAX_ROWS = 50  # of a table; a longer series is shown at fewer x, and whole in the figure
COLOURS = {"holds": "green", "does not hold": "red", "not judged": "yellow"}


def metric_tables(result: StudyResult) -> Iterator[Sheet]:
    """One row per x, one column per strategy and setting."""
    for metric in dict.fromkeys(mean.metric for mean in result.points):
        means = [mean for mean in result.points if mean.metric == metric]
        written, every = unit(metric), _xs(means)
        step = ceil(len(every) / MAX_ROWS)
        parts = [TITLES[metric], written.name, f"one x of {step}" if step > 1 else ""]
        title = ", ".join(part for part in parts if part)
        sheet = Sheet(title)
        found = {(mean.x, _line(mean)): mean for mean in means}
        lines = dict.fromkeys(_line(mean) for mean in means)
        add = sheet.add_texts if any(isinstance(x, str) for x in every) else sheet.add_numbers
        add("x")
        sheet.add_numbers(*lines)
        for x in every[::step]:
            sheet.add_row(x_text(x), *(_cell(found.get((x, line)), written) for line in lines))
        yield sheet


def claims_table(result: StudyResult) -> Table:
    """Every claim with its verdict; the reason stands below what does not hold."""
    table = Table(title="Claims", title_justify="left", box=SIMPLE, show_edge=False)
    table.add_column("verdict", no_wrap=True)
    table.add_column(f"{result.paper} says, and what we have")
    for finding in result.claims:
        verdict = Text(finding.verdict, style=COLOURS[finding.verdict])
        table.add_row(verdict, _finding_text(finding))
    return table


def _finding_text(finding: Finding) -> Text:
    text = Text(f"{finding.section} {finding.id}: “{finding.text}”\n")
    return text.append(finding.why, style="dim" if finding.verdict == "holds" else "")


def _line(mean: Mean) -> str:
    setting = mean.key().setting
    return f"{mean.strategy}\n{setting}" if setting else mean.strategy


def _xs(means: list[Mean]) -> list[X]:
    """Numbers by size; categories have no order but that of the study."""
    numbers = sorted({mean.x for mean in means if not isinstance(mean.x, str)})
    return [*numbers, *dict.fromkeys(mean.x for mean in means if isinstance(mean.x, str))]


def _cell(mean: Mean | None, written: Unit) -> str:
    if mean is None:
        return ""
    _, factor, decimals = written
    value = f"{mean.mean * factor:.{decimals}f}"
    return value if mean.ci is None else f"{value}±{mean.ci * factor:.{decimals}f}"
