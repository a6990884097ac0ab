"""How are lines told apart? One look per strategy and setting, the same in every panel.

Colours and dots are strategies, or settings where there is one strategy; dashes, hatches and
whether dots are filled are settings. The first strategies have wider curves and larger dots, so
that lines that coincide are all seen. A star is a value that the paper states, a triangle one that
it states as a bound; differences and ratios have no place of their own in a figure.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tidings.studies.spec import Study
from tidings.studies.wording import X

Line = tuple[str, str]  # a setting, empty where there is none, and a strategy
PlaceOnAxis = Callable[[Line, X], float]  # where on the axis something of a line stands

DASHES = ("-", "--", ":", "-.")
HATCHES = ("", "//", "..", "xx")
DOTS = ("o", "s", "D", "P", "X", "p", "h")  # none that `MARKS` has
WIDEST, WIDTH_STEP, NARROWEST = 5.0, 1.1, 1.0  # of curves, by rank
LARGEST, SIZE_STEP, SMALLEST = 12.0, 2.2, 3.5  # of their dots
MAX_MARKS = 12  # on one curve: bars of confidence, or values of the paper
MARKS = {"near": "*", "at least": "^", "at most": "v"}
MARK_WORDS = {"near": "stated", "at least": "at least", "at most": "at most"}


def label(line: Line) -> str:
    setting, strategy = line
    return f"{strategy}, {setting}" if setting else strategy


def colour(study: Study, line: Line) -> str:
    return f"C{rank(study, line)}"


def dot(study: Study, line: Line) -> str:
    return DOTS[rank(study, line) % len(DOTS)]


def filling(study: Study, line: Line) -> str:
    return "white" if study.settings().index(line[0]) % 2 else colour(study, line)


def width(rank: int) -> float:
    return max(WIDEST - rank * WIDTH_STEP, NARROWEST)


def dot_size(rank: int) -> float:
    return max(LARGEST - rank * SIZE_STEP, SMALLEST)


def rank(study: Study, line: Line) -> int:
    """The number of its strategy; of its setting, where there is one strategy."""
    setting, strategy = line
    known = list(dict.fromkeys(s for each in study.settings() for s in study.strategies(each)))
    return known.index(strategy) if len(known) > 1 else study.settings().index(setting)


def dash(study: Study, line: Line) -> str:
    return DASHES[study.settings().index(line[0]) % len(DASHES)]


def hatch(study: Study, line: Line) -> str:
    return HATCHES[study.settings().index(line[0]) % len(HATCHES)]


def draw_marks(
    panel: Axes, study: Study, metric: str, place: PlaceOnAxis, filled: str = "none"
) -> None:
    """What the paper states of a metric."""
    for claim in study.claims:
        if claim.metric != metric or claim.form() != "value" or claim.kind not in MARKS:
            continue
        xs = claim.xs(study.xs(claim.setting))
        for strategy in claim.strategies():
            line = (claim.setting, strategy)
            panel.plot(
                [place(line, x) for x in xs],
                [claim.expected()] * len(xs),
                linestyle="",
                marker=MARKS[claim.kind],
                markersize=11,
                markerfacecolor=filled,
                markeredgecolor=colour(study, line),
                markevery=ceil(len(xs) / MAX_MARKS),
                zorder=3,
            )


def legend_of_marks(study: Study) -> list[Line2D]:
    kinds = {claim.kind for claim in study.claims if claim.form() == "value"}
    return [
        Line2D([], [], linestyle="", marker=MARKS[kind], markersize=9, markerfacecolor="none",
               color="black", label=f"{study.about.paper}: {MARK_WORDS[kind]}")
        for kind in MARKS
        if kind in kinds
    ]  # fmt: skip
