"""`tidings analyse`: from trace rows to metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from tidings.cli.tables import metrics_table, records, study_table

if TYPE_CHECKING:
    from tidings.pipeline.jobs.analyse import Analysis

PICTURE = "delivery.png"


def analyse(
    traces: Annotated[Path, typer.Argument(help="A folder of trace rows, or a sweep's results")],
    out: Annotated[
        Path | None, typer.Option(help="Write tables (Parquet, CSV) and a picture to this folder")
    ] = None,
    age: Annotated[
        bool,
        typer.Option("--age", help="Delays as messages tell them: for brokers whose clocks differ"),
    ] = False,
    master: Annotated[
        str | None, typer.Option(help="Spark's master [default: all cores of this machine]")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Compute delivery, on-time ratio, traffic and delays from trace rows, with Spark.

    Works on what `tidings simulate --traces`, `tidings sweep` and `tidings up` leave, also while
    they still write.
    """
    from tidings.pipeline.files import trace_files, writable_folder
    from tidings.pipeline.jobs.analyse import analyse as run_analysis
    from tidings.pipeline.jobs.analyse import write
    from tidings.pipeline.jobs.picture import draw
    from tidings.pipeline.schemas import check_versions
    from tidings.pipeline.session import spark_session

    for files in trace_files(traces).values():  # mistakes are found before Spark takes its seconds
        check_versions(files)
    if out is not None:
        writable_folder(out, "--out")
    analysis = run_analysis(
        spark_session(master, "tidings analyse"), traces, "age" if age else "clock"
    )
    written = [] if out is None else [*write(analysis, out), draw(analysis, out / PICTURE)]
    if json:
        tables = {name: records(table) for name, table in analysis.tables().items()}
        result = {"traces": str(traces), "written": [str(path) for path in written], **tables}
        print(msgspec.json.encode(result).decode())
    else:
        _show(analysis, traces, out)


def _show(analysis: Analysis, traces: Path, out: Path | None) -> None:
    console, study = Console(), analysis.study
    if study is not None:
        console.print(study_table(", ".join(sorted(set(study["study"]))), study))
    else:
        console.print(metrics_table("Runs", analysis.strategies, ["run", "strategy"]))
        if analysis.strategies["run"].nunique() == 1:
            labels = ["subscription", "expected"]
            console.print(metrics_table("Subscribers", analysis.subscribers, labels))
        for drop in records(analysis.drops):
            what = f"dropped ({drop['reason']}): {drop['count']}"
            console.print(f"{drop['run']}, {drop['strategy']}, {what}", soft_wrap=True)
    runs = analysis.strategies["run"].nunique()
    console.print(f"Read {runs} {'run' if runs == 1 else 'runs'} from {traces}.", soft_wrap=True)
    if out is None:
        hint = f"tidings analyse {traces} --out FOLDER, for tables and a picture"
        console.print(f"Next: {hint}", soft_wrap=True)
    else:
        console.print(f"Tables (Parquet, CSV) and {PICTURE} are in {out}.", soft_wrap=True)
