"""Work of minutes to hours, as a person sees it go on and ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

PACE_OVER_S = 3600.0  # points take seconds to minutes: the time left follows from the last hour


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Batch systems end a job with SIGTERM: it means what Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def ended_in_good_order() -> Iterator[Event]:
    """The first Ctrl-C or SIGTERM sets the event, so that what is in hand can be finished; a second
    one interrupts at once. Who ignores Ctrl-C, in the background, goes on doing so."""
    ending = Event()

    def end(number: int, frame: object) -> None:
        if ending.is_set():
            raise KeyboardInterrupt
        ending.set()

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def working(silent: bool, what: str) -> Iterator[None]:
    """That something goes on, on a terminal; nothing elsewhere. For work that cannot be counted."""
    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield
        return
    with console.status(Text(what)):
        yield


@contextmanager
def step_progress(silent: bool, name: str) -> Iterator[Callable[[str, float], None]]:
    """A bar with an estimate on a terminal, nothing elsewhere; it is told the step that begins, and
    which part of all the work was done before."""
    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield lambda step, part: None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        _TimeLeft(),
        TextColumn("left"),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task(name, total=1.0)

        def tell(step: str, part: float) -> None:
            # Steps are few, so that a speed from step to step would be told late: here it is that
            # of all that was done.
            gone_s = bar.tasks[task].elapsed or 0.0
            left_s = gone_s / part * (1.0 - part) if part else None
            ends_at_s = None if left_s is None else gone_s + left_s
            description = f"{name}: {step}"
            bar.update(task, completed=part, description=description, ends_at_s=ends_at_s)

        yield tell


class _TimeLeft(ProgressColumn):
    """By the pace of the steps that were done."""

    def render(self, task: Task) -> Text:
        ends_at_s = task.fields.get("ends_at_s")
        if ends_at_s is None:
            return Text("-:--:--", style="progress.remaining")
        left_s = max(0.0, ends_at_s - (task.elapsed or 0.0))
        return Text(str(timedelta(seconds=int(left_s))), style="progress.remaining")


@contextmanager
def progress(silent: bool, name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with an estimate on a terminal, nothing elsewhere; it is told points done and all."""
    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield lambda done, points: None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("points,"),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        speed_estimate_period=PACE_OVER_S,
    )
    with bar:
        task = bar.add_task(name, total=None)
        yield lambda done, points: bar.update(task, completed=done, total=points)
