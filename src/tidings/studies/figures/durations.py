"""How is a time written on an axis? As people say it: 20 ms, 1.5 s."""

from __future__ import annotations

from math import inf

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

STEPS = (1.0, 2.0, 5.0)  # within a decade
MOST_DEADLINES = 4  # more lines than that say nothing
DEADLINE = "deadline"


def duration_text(seconds: float) -> str:
    if seconds == 0:
        return "0"
    return f"{round(seconds, 6):g} s" if seconds >= 1 else f"{round(seconds * 1000, 6):g} ms"


def mark_durations(axis: Axis) -> None:
    """The ticks of an axis whose numbers are seconds."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: duration_text(value)))


def mark_decades(axis: Axis) -> None:
    """Ticks at 1, 2, 5, 10, ... on a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=STEPS))
    axis.set_minor_formatter(NullFormatter())


def draw_deadlines(panel: Axes, deadlines_s: list[float], upright: bool) -> None:
    """Where messages begin to be late; `upright` if x is time."""
    known = sorted({each for each in deadlines_s if each < inf})
    if len(known) > MOST_DEADLINES:
        return
    line = panel.axvline if upright else panel.axhline
    for number, each in enumerate(known):
        label = f"{DEADLINE} ({', '.join(map(duration_text, known))})"
        line(each, color="black", linewidth=1.0, linestyle=(0, (1, 2)), zorder=1,
             label=label if number == 0 else "_")  # fmt: skip
