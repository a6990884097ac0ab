"""Windows as they are completed: a table that is kept up to date, or lines of JSON."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from rich.console import Console
from rich.live import Live

from tidings.cli.screens.sheet import Sheet

if TYPE_CHECKING:
    from types import TracebackType

    from tidings.pipeline.transforms.windows import Window
    from tidings.pipeline.watch.job import Status

SHOWN_WINDOWS = 20
A_DAY_S = 86_400.0  # an instant before that is of a simulation, whose clock begins at 0
COLUMNS = ("from", "to", "expected", "lost\n%", "on time\n%", "95 %\nms", "deadline\nms")


class Screen(Protocol):
    """Where a person or a script sees what is found. `show` is called from another thread."""

    def __enter__(self) -> Screen: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None: ...
    def show(self, windows: list[Window]) -> None: ...
    def report(self, status: Status) -> None: ...
    def end(self, status: Status, memory: Path) -> None: ...


class JsonScreen:
    """One line per window, and one at the end."""

    def __init__(self, target: float) -> None:
        self._target = target

    def __enter__(self) -> JsonScreen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, windows: list[Window]) -> None:
        for window in windows:
            violated = window.violates(self._target)
            fields = {"id": window.id, **msgspec.structs.asdict(window), "violated": violated}
            print(msgspec.json.encode(fields).decode(), flush=True)

    def report(self, status: Status) -> None:
        pass

    def end(self, status: Status, memory: Path) -> None:
        fields = {"end": msgspec.structs.asdict(status), "windows": str(memory / "windows")}
        print(msgspec.json.encode(fields).decode(), flush=True)


class TableScreen:
    """The last windows and what was read so far; without a terminal, a line per window."""

    def __init__(self, console: Console, traces: Path, target: float) -> None:
        self._console, self._traces, self._target = console, traces, target
        self._last: deque[Window] = deque(maxlen=SHOWN_WINDOWS)
        self._violations = 0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._caption = "waiting for the first windows"

    def __enter__(self) -> TableScreen:
        if self._console.is_terminal:
            self._live.start()
            self._refresh()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if self._live.is_started:
            self._live.stop()

    def show(self, windows: list[Window]) -> None:
        for window in windows:
            self._last.append(window)
            if window.violates(self._target):
                self._violations += 1
                self._say(_violation(window, self._target))
        self._refresh()

    def report(self, status: Status) -> None:
        self._caption = _so_far(status)
        self._refresh()

    def end(self, status: Status, memory: Path) -> None:
        self._console.print(self._sheet("The last windows"))
        count = f"{status.windows:,} windows, {self._violations:,} below {self._target:.2%}."
        self._say(f"{_so_far(status)}. {count}")
        self._say(f"All windows are in {memory / 'windows'}.")
        self._say(f"Next: tidings analyse {self._traces}")

    def _say(self, words: str) -> None:
        self._console.print(words, soft_wrap=True, markup=False)  # topics may have brackets

    def _refresh(self) -> None:
        if self._live.is_started:
            sheet = self._sheet(f"{self._traces}, Ctrl-C to end")
            sheet.caption = self._caption
            self._live.update(sheet, refresh=True)

    def _sheet(self, title: str) -> Sheet:
        sheet = Sheet(title)
        sheet.add_texts("topic")
        sheet.add_numbers(*COLUMNS)
        for window in self._last:
            style = "red" if window.violates(self._target) else ""
            sheet.add_row(window.topic, *_cells(window), style=style)
        return sheet


def _cells(window: Window) -> tuple[str, ...]:
    ratios = (f"{window.loss_ratio * 100:.2f}", f"{window.on_time_ratio * 100:.2f}")
    delays = (_ms(window.delay_p95_s), _ms(window.deadline_s))
    return (
        _instant(window.from_s),
        _instant(window.to_s),
        f"{window.expected:,}",
        *ratios,
        *delays,
    )


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None or seconds == float("inf") else f"{seconds * 1000:.1f}"


def _instant(at: float) -> str:
    return f"{at:g} s" if at < A_DAY_S else f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"


def _violation(window: Window, target: float) -> str:
    """For a person; a deadline of none is that the message comes at all."""
    span = f"{_instant(window.from_s)} to {_instant(window.to_s)}"
    figures = f"{window.on_time_ratio:.2%} on time, {window.loss_ratio:.2%} lost"
    deadline = f"{_ms(window.deadline_s)} ms" if window.deadline_s < float("inf") else "no deadline"
    return f"Violation: {window.topic} ({deadline}), {span}: {figures}; the target is {target:.2%}."


def _so_far(status: Status) -> str:
    late, refused = f"{status.late_rows:,} came late", f"{status.refused_files:,} files refused"
    return f"{status.rows:,} rows read, {late}, {refused}"
