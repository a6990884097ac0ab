"""`tidings study`: figures of papers, made again and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from tidings.cli.exit_codes import FAILED, INTERRUPTED
from tidings.cli.options import Conf, Format, Json, Master, NoProgressBar, spark_settings
from tidings.cli.progress import ended_by_sigterm, progress
from tidings.cli.screens.code import simulated_by
from tidings.cli.screens.sheet import Sheet

if TYPE_CHECKING:
    from tidings.pipeline.sweep.job import SweepReport
    from tidings.studies.report import StudyResult

WIDEST = 400  # characters of a table

study = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Make a paper's figure again, and judge what the paper says about it.

    \b
      What there is:  tidings study list
      In minutes:     tidings study run dcrd-fig2 --quick
      In hours:       tidings study run dcrd-fig2
    """,
)


@study.command("list", short_help="Name the studies that can be run.")
def list_studies(
    json: Json = False,
) -> None:
    """Name the studies that can be run: those in the folder studies here, or else packaged."""
    from tidings.studies.spec import read_study, study_files

    studies = {name: read_study(path) for name, path in study_files().items()}
    if json:
        listed = [
            {"study": name} | msgspec.to_builtins(each.about) | {"claims": len(each.claims)}
            for name, each in studies.items()
        ]
        print(msgspec.json.encode({"studies": listed}).decode())
        return
    sheet = Sheet()
    sheet.add_texts("study", "figure", "what it shows")
    sheet.add_numbers("claims")
    for name, each in studies.items():
        sheet.add_row(name, each.about.origin(), each.about.title, str(len(each.claims)))
    console = Console()
    console.print(sheet)
    console.print(f"Next: tidings study run {next(iter(studies))} --quick")


@study.command("run", short_help="Run a study and judge its claims.")
def run_study(
    name: Annotated[str, typer.Argument(help="A name that the list has, or a TOML file")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds, minutes instead of hours of messages")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results [default: results/<name>, -quick with --quick]"),
    ] = None,
    format: Format = "png",
    master: Master = None,
    conf: Conf = None,
    quiet: NoProgressBar = False,
    json: Json = False,
) -> None:
    """Simulate what a study declares, print its table, judge its claims, and draw its figure.

    Only what is not in the folder yet runs, so Ctrl-C loses nothing that has finished: the same
    command goes on from there. A full run takes hours; --quick takes minutes, has results of its
    own, and says so in the figure.

    The JSON object has study, quick, points (strategy, x, metric, mean, ci, runs, and setting where
    there are several), claims (id, section, text, paper, ours, verdict, why, mean_of_ratios) and
    code (how many points ran now, compiled or interpreted). ci is half the width of the 95 %
    confidence interval over seeds. Over subscribers, x is a label or "mean". A ratio of ours is one
    of sums over seeds; mean_of_ratios is over single seeds.
    """
    from tidings.studies.figures.formats import check_format

    check_format(format)  # what follows takes seconds to import
    from tidings.pipeline.session import spark_session
    from tidings.studies.figures.figure import draw
    from tidings.studies.report import write
    from tidings.studies.run import run
    from tidings.studies.spec import find_study, read_study

    chosen = read_study(find_study(name), quick)
    folder = out or Path("results") / chosen.spec.name
    with ended_by_sigterm():
        report, result = run(
            chosen,
            folder,
            lambda: spark_session(master, "tidings study", spark_settings(conf)),
            lambda work: progress(quiet or json, work),
        )
    _tell(report, f"tidings study run {name}{' --quick' if quick else ''} --out {folder}")
    if result is not None:
        written = write(result, folder / f"{chosen.spec.name}.json")
        drawn = draw(chosen, result, folder / f"{chosen.spec.name}.{format}")
        if json:
            print(msgspec.json.encode(msgspec.to_builtins(result) | {"code": report.code}).decode())
        else:
            _show(result, written, drawn, name)
            if words := simulated_by(report.code):
                Console().print(words, soft_wrap=True, markup=False)
    if report.interrupted or report.failures:
        raise typer.Exit(INTERRUPTED if report.interrupted else FAILED)


def _tell(report: SweepReport, command: str) -> None:
    """What did not run, and how to go on."""
    errors = Console(stderr=True)
    for failure in report.failures:
        what = f"Point {failure['point']} failed: {failure['parameters']}: {failure['error']}"
        errors.print(what, markup=False, soft_wrap=True)
    if report.interrupted or report.failures:
        there = report.kept + report.ran
        done = f"{there} of {report.points} points are in {report.out}."
        errors.print(f"{done} To run the others: {command}", markup=False, soft_wrap=True)


def _show(result: StudyResult, written: Path, drawn: Path, name: str) -> None:
    from tidings.cli.screens.study import claims_table, metric_tables

    console = Console()
    console.print(f"{result.title}: means over seeds ± 95 % confidence")
    # A file has no edge at which numbers need be cut.
    wide = console if console.is_terminal else Console(width=WIDEST)
    for table in metric_tables(result):
        wide.print(table)
    console.print(claims_table(result))
    verdicts = [claim.verdict for claim in result.claims]
    console.print(
        f"{result.study}, {result.made_by()}. Claims that hold: "
        f"{verdicts.count('holds')}, that do not: {verdicts.count('does not hold')}, "
        f"not judged: {verdicts.count('not judged')}.",
        soft_wrap=True,
    )
    console.print(f"The figure is {drawn}, the numbers are in {written}.", soft_wrap=True)
    if result.quick:
        console.print(f"Next, for hours: tidings study run {name}", soft_wrap=True)
