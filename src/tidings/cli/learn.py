"""`tidings learn`: from measurements to a model of every link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console

from tidings.broker.settings import Settings
from tidings.cli.options import Conf, Json, Master, spark_settings
from tidings.cli.progress import ended_by_sigterm, step_progress
from tidings.cli.screens.analysis import MOST_FILES
from tidings.cli.screens.sheet import Sheet
from tidings.core.errors import ConfigError

if TYPE_CHECKING:
    from tidings.pipeline.learn.job import Lesson


def learn(
    measured: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="A folder of trace rows (level hops), or a table of round trips"
        ),
    ],
    out: Annotated[Path, typer.Option(help="Write the model to this file (Parquet)")],
    slice_s: Annotated[
        float | None,
        typer.Option(help="Seconds of a slice of time [default: 60 of a table, 10 of traces]"),
    ] = None,
    hold_back: Annotated[
        float, typer.Option(help="Last part of the time, on which predictions are tried")
    ] = 0.2,
    probe_timeout_s: Annotated[
        float, typer.Option(help="Seconds that the brokers of a trace wait for a probe's answer")
    ] = Settings().probe_timeout_s,
    master: Master = None,
    conf: Conf = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only where the model is")] = False,
    json: Json = False,
) -> None:
    """Learn how links behave from probes and transmissions, with Spark.

    Delays, losses, times per kilobyte, outages, hours of the day and links that fail together
    become one file. Brokers start from it (`link_model`), and `tidings simulate --weather` makes a
    network of it. A table of round trips has the columns slice, source, target and rtt_ms.
    """
    from tidings.files.folders import writable_folder
    from tidings.pipeline.learn.job import learn as run_lesson
    from tidings.pipeline.learn.job import write
    from tidings.pipeline.learn.measurements import checked_input
    from tidings.pipeline.learn.session import learning_session

    # mistakes are found before Spark takes its seconds
    given, more = checked_input(measured, slice_s, hold_back, probe_timeout_s), spark_settings(conf)
    if out.is_dir():
        raise ConfigError("--out", "file", str(out), "a file, such as weather.parquet")
    writable_folder(out.parent, "--out")
    with ended_by_sigterm(), step_progress(quiet or json, f"learn {measured.name}") as tell:
        lesson = run_lesson(learning_session(given, master, more), given, tell)
        write(lesson, out)
    if json:
        print(msgspec.json.encode(_report(lesson, measured, out)).decode())
        return
    console = Console()
    if not quiet:
        _show(console, lesson, measured)
    hint = f"Next: tidings simulate SCENARIO --weather {out}"
    console.print(f"The model is {out}. {hint}", soft_wrap=True)


def _report(lesson: Lesson, measured: Path, out: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = lesson.prediction.to_dict("records")
    return {
        "input": str(measured),
        "written": str(out),
        "slice_s": lesson.slice_s,
        "links": lesson.model.num_rows,
        "samples": _samples(lesson),
        "groups": _groups(lesson),
        "unknown": _unknown(lesson),
        "quarantined": [msgspec.structs.asdict(one) for one in lesson.quarantined],
        "prediction": rows,
    }


def _samples(lesson: Lesson) -> int:
    return int(lesson.model["samples"].to_numpy().sum())


def _groups(lesson: Lesson) -> int:
    return len(lesson.model["group"].unique().drop_null())


def _unknown(lesson: Lesson) -> dict[str, dict[str, int]]:
    """What could not be learned, and why: for how many links."""
    unknown = {}
    for name in lesson.model.column_names:
        if name.endswith("_reason"):
            counts = lesson.model[name].drop_null().value_counts().to_pylist()
            unknown[name.removesuffix("_reason")] = {c["values"]: c["counts"] for c in counts}
    return {what: reasons for what, reasons in unknown.items() if reasons}


def _show(console: Console, lesson: Lesson, measured: Path) -> None:
    console.print(_prediction_table(lesson))
    console.print(
        f"Learned {lesson.model.num_rows:,} directed links from {_samples(lesson):,} round trips "
        f"of {measured}; {_groups(lesson)} groups of links fail together.",
        soft_wrap=True,
    )
    for what, reasons in _unknown(lesson).items():
        for reason, count in reasons.items():
            console.print(f"Unknown: {what} of {count:,} links ({reason})", soft_wrap=True)
    _show_quarantined(console, lesson)


def _show_quarantined(console: Console, lesson: Lesson) -> None:
    for one in lesson.quarantined[:MOST_FILES]:
        console.print(f"Not read: {one.file}: {one.reason}", soft_wrap=True, markup=False)
    if (more := len(lesson.quarantined) - MOST_FILES) > 0:
        console.print(f"Not read: {more} more files; --json names them all.")


def _prediction_table(lesson: Lesson) -> Sheet:
    sheet = Sheet(f"Errors of predicted delays on held-back slices of {lesson.slice_s:g} s")
    sheet.add_numbers("slices ahead")
    sheet.add_texts("predictor")
    sheet.add_numbers("predicted", "mean error\nms", "root mean square\nms")
    for row in lesson.prediction.itertuples():
        figures = (f"{row.slices:,}", f"{row.mae_ms:.2f}", f"{row.rmse_ms:.2f}")
        sheet.add_row(str(row.horizon), row.predictor, *figures)
    if not len(lesson.prediction):
        sheet.caption = "too little time to hold anything back"
    return sheet
