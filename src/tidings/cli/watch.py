"""`tidings watch`: are contracts kept, while the overlay runs?"""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tidings.cli.options import Conf, Master, spark_settings
from tidings.cli.progress import ended_in_good_order
from tidings.cli.screens.watch import JsonScreen, Screen, TableScreen
from tidings.core.errors import ConfigError

if TYPE_CHECKING:
    from tidings.pipeline.transforms.windows import Window
    from tidings.pipeline.watch.job import Watch
    from tidings.pipeline.watch.violations import ViolationPublisher

MEMORY = ".watch"  # below the traces, where other readers pass it over


def watch(
    traces: Annotated[Path, typer.Argument(help="The folder to which brokers write trace rows")],
    url: Annotated[
        str, typer.Option(help="Publish violations through this broker: mqtt://HOST:PORT")
    ] = "",
    window_s: Annotated[float, typer.Option(help="Seconds of a window")] = 10.0,
    watermark_s: Annotated[
        float,
        typer.Option(help="Rows may come so many seconds later than others; more than flush_s"),
    ] = 10.0,
    wait_s: Annotated[
        float, typer.Option(help="A message is lost if it takes longer; more than any deadline")
    ] = 10.0,
    target: Annotated[
        float, typer.Option(help="Part of the messages that must be on time in each window")
    ] = 0.99,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder of what is remembered [default: TRACES/.watch]"),
    ] = None,
    age: Annotated[
        bool,
        typer.Option(
            "--age",
            help="Delays as messages tell them: for brokers whose clocks differ, by less than "
            "--watermark-s",
        ),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Judge what is there, to the last window, and end")
    ] = False,
    batch_rows: Annotated[
        int, typer.Option(min=1, help="Rows to take at once, when many are waiting")
    ] = 400_000,
    master: Master = None,
    conf: Conf = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per window")] = False,
) -> None:
    """Judge every contract, window by window, while the overlay runs, with Spark.

    Prints how much was lost and on time per topic and deadline. Windows below --target are
    published on $tidings/violations/TOPIC, with --url. Ends with Ctrl-C, and goes on where it was
    when it is started again.
    """
    from tidings.files.folders import writable_folder
    from tidings.pipeline.session import spark_session
    from tidings.pipeline.transforms.windows import Timing, checked_timing
    from tidings.pipeline.watch.job import Watch

    timing = checked_timing(Timing(window_s, watermark_s, wait_s, "age" if age else "clock"))
    _check(traces, target, once)
    violations = _violation_publisher(url, target)
    memory = writable_folder(checkpoint or traces / MEMORY, "--checkpoint")
    screen: Screen = JsonScreen(target) if json else TableScreen(Console(), traces, target)

    def found(windows: list[Window]) -> None:
        screen.show(windows)
        if violations is not None:
            violations.publish(windows)

    spark = spark_session(master, "tidings watch", spark_settings(conf))
    with screen, ended_in_good_order() as ending:
        watching = Watch(spark, traces, memory, timing, found, _warn)
        try:
            _keep_watching(watching, screen, once, batch_rows, ending)
        except KeyboardInterrupt:
            pass  # of somebody who does not wait for the end of what is in hand
        finally:
            watching.stop()
            if violations is not None:
                violations.end()
    screen.end(watching.status, memory)


def _keep_watching(
    watching: Watch, screen: Screen, once: bool, batch_rows: int, ending: Event
) -> None:
    """Until it is told to end; `once`, until nothing is left. No batch is cut short: Spark would
    fill the screen with what it thinks of that."""
    while not ending.is_set():
        if not watching.step(batch_rows):
            if once:
                watching.finish()
                return
            watching.rest()
        screen.report(watching.status)


def _check(traces: Path, target: float, once: bool) -> None:
    if not 0 <= target <= 1:
        raise ConfigError("tidings watch", "--target", target, "a part of all, from 0 to 1")
    if traces.exists() and not traces.is_dir():
        raise ConfigError(str(traces), "traces", "not a folder", "a folder of trace rows")
    if once:
        from tidings.traces.files import listed_files

        listed_files(traces)
    elif not traces.exists():
        _warn(f"{traces} is not there yet; waiting for a broker that writes to it.")


def _violation_publisher(url: str, target: float) -> ViolationPublisher | None:
    from tidings.pipeline.watch.violations import ViolationPublisher

    return ViolationPublisher(url, target, _warn) if url else None


def _warn(problem: str) -> None:
    print(f"tidings: {problem}", file=sys.stderr, flush=True)
