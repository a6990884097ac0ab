"""`tidings sweep`: one scenario many times, with its parameters varied."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console

from tidings.cli.exit_codes import FAILED, INTERRUPTED
from tidings.cli.options import Conf, Json, Master, NoProgressBar, spark_settings
from tidings.cli.progress import ended_by_sigterm, progress
from tidings.cli.screens.code import simulated_by
from tidings.cli.screens.tables import records, study_table
from tidings.core.errors import TidingsError

if TYPE_CHECKING:
    import pandas as pd

    from tidings.pipeline.sweep.job import SweepReport


def sweep(
    spec: Annotated[Path, typer.Argument(help="What to vary: a TOML file as studies/mesh20.toml")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results [default: results/<name>]")
    ] = None,
    master: Master = None,
    conf: Conf = None,
    quiet: NoProgressBar = False,
    json: Json = False,
) -> None:
    """Simulate every point of a grid, on all cores or a cluster, and print the metrics.

    Only points that are not in the folder yet run, so Ctrl-C loses nothing that has finished: the
    same command goes on from there. The JSON object says by which code how many points ran.
    """
    from tidings.pipeline.analyse.job import study_of
    from tidings.pipeline.session import spark_session
    from tidings.pipeline.sweep.grid import read_spec
    from tidings.pipeline.sweep.job import sweep as run_sweep

    chosen, more = read_spec(spec), spark_settings(conf)
    folder = out or Path("results") / chosen.name
    session = partial(spark_session, master, "tidings sweep", more)
    with ended_by_sigterm(), progress(quiet or json, chosen.name) as tell:
        report = run_sweep(chosen, folder, session, tell)
    study, problem = None, None
    if not report.interrupted and len(report.failures) < report.points:
        try:
            study = study_of(session(), folder, chosen.name)
        except TidingsError as error:  # the points are there all the same, and that is said first
            problem = error
    if json:
        print(msgspec.json.encode(_result(report, study)).decode())
    else:
        _show(report, study, _command(spec, report.out, master, conf))
    if problem is not None:
        raise problem
    if report.interrupted or report.failures:
        raise typer.Exit(INTERRUPTED if report.interrupted else FAILED)


def _result(report: SweepReport, study: pd.DataFrame | None) -> dict[str, Any]:
    table = [] if study is None else records(study)
    return msgspec.structs.asdict(report) | {"metrics": table}


def _command(spec: Path, out: str, master: str | None, conf: list[str] | None) -> str:
    """What goes on from here, in the same place."""
    options = [f"--master {shlex.quote(master)}"] if master else []
    options += [f"--conf {shlex.quote(text)}" for text in conf or ()]
    return " ".join((f"tidings sweep {spec} --out {out}", *options))


def _show(report: SweepReport, study: pd.DataFrame | None, again: str) -> None:
    console, errors = Console(), Console(stderr=True)
    if study is not None:
        console.print(study_table(report.study, study))
    for failure in report.failures:
        errors.print(
            f"Point {failure['point']} failed: scenario {failure['scenario']}, "
            f"seed {failure['seed']}, {failure['parameters']}: {failure['error']}",
            markup=False,
            soft_wrap=True,
        )
    there = report.kept + report.ran
    console.print(
        f"{there} of {report.points} points are in {report.out}: {report.ran} ran now, "
        f"{report.kept} were there ({report.seconds:.1f} s).",
        soft_wrap=True,
    )
    if words := simulated_by(report.code):
        console.print(words, soft_wrap=True, markup=False)
    if report.interrupted or report.failures:
        rest = report.points - there
        console.print(f"To run the other {rest}: {again}", soft_wrap=True, markup=False)
    else:
        command = f"tidings analyse {report.out} --out {report.out}/tables"
        console.print(f"Next: {command}", soft_wrap=True)
