"""`tidings analyse`: from trace rows to metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from tidings.cli.options import Conf, Format, Json, Master, NoStatus, spark_settings
from tidings.cli.progress import ended_by_sigterm, working
from tidings.cli.screens.analysis import show
from tidings.cli.screens.tables import records
from tidings.core.errors import ConfigError

if TYPE_CHECKING:
    from tidings.pipeline.analyse.job import Analysis

PICTURES = ("delivery", "delay")  # the names of their files


def analyse(
    traces: Annotated[Path, typer.Argument(help="A folder of trace rows, or a sweep's results")],
    out: Annotated[
        Path | None, typer.Option(help="Write tables (Parquet, CSV) and pictures to this folder")
    ] = None,
    age: Annotated[
        bool,
        typer.Option("--age", help="Delays as messages tell them: for brokers whose clocks differ"),
    ] = False,
    window_s: Annotated[
        float, typer.Option(help="Length of the stretches of time in `windows`, in seconds")
    ] = 60.0,
    format: Format = "png",
    master: Master = None,
    conf: Conf = None,
    quiet: NoStatus = False,
    json: Json = False,
) -> None:
    """Compute delivery, on-time ratio, traffic and delays from trace rows, with Spark.

    Works on what `tidings simulate --traces`, `tidings sweep` and `tidings up` leave, also while
    they still write. A file that cannot be read is named and does not stop the others.
    """
    from tidings.files.folders import writable_folder
    from tidings.pipeline.analyse.job import analyse as run_analysis
    from tidings.pipeline.analyse.spark_settings import is_small
    from tidings.pipeline.session import spark_session
    from tidings.studies.figures.formats import check_format
    from tidings.traces.intake import take_in

    check_format(format)
    if not 0 < window_s < float("inf"):
        raise ConfigError("--window-s", "length", window_s, "a number of seconds above 0")
    intake = take_in(traces)  # mistakes are found before Spark takes its seconds
    if out is not None:
        writable_folder(out, "--out")
    with ended_by_sigterm(), working(quiet or json, f"Analysing {traces}"):
        brief = is_small(intake.size_bytes())
        spark = spark_session(master, "tidings analyse", spark_settings(conf), brief)
        analysis = run_analysis(spark, traces, "age" if age else "clock", window_s, intake)
        written = [] if out is None else _written(analysis, out, format)
    if json:
        tables = {name: records(table) for name, table in analysis.tables().items()}
        result = {"traces": str(traces), "written": [str(path) for path in written], **tables}
        print(msgspec.json.encode(result).decode())
    else:
        show(Console(), analysis, traces)
        _say_where(traces, out, format)


def _written(analysis: Analysis, out: Path, format: str) -> list[Path]:
    from tidings.pipeline.analyse.job import write
    from tidings.studies.figures.delays import draw_delays
    from tidings.studies.figures.strategies import draw

    delivery, delay = (out / f"{name}.{format}" for name in PICTURES)
    return [*write(analysis, out), draw(analysis, delivery), draw_delays(analysis, delay)]


def _say_where(traces: Path, out: Path | None, format: str) -> None:
    console = Console(markup=False)
    if out is None:
        hint = f"tidings analyse {traces} --out FOLDER, for all tables and two pictures"
        console.print(f"Next: {hint}", soft_wrap=True)
    else:
        pictures = " and ".join(f"{name}.{format}" for name in PICTURES)
        console.print(f"Tables (Parquet, CSV), {pictures} are in {out}.", soft_wrap=True)
