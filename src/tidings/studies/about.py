"""What does the figure of a study show? Its axes, its metrics, and what it says of itself.

The x of a figure is a parameter of the grid, whose metrics are numbers of whole runs, or one of
`SERIES_OVER`: then each run gives a series of its own, and the grid makes lines only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from tidings.pipeline.analyse.question import DELAYS_S, LATENESS_RATIOS, Over
from tidings.pipeline.transforms.metrics import STRATEGY

LATENESS, SUBSCRIBER, DELAY, TIME = "lateness", "subscriber", "delay", "time"
SERIES_OVER: dict[str, Over] = {
    LATENESS: "lateness",
    SUBSCRIBER: "subscriber",
    DELAY: "delay",
    TIME: "time",
}

# The fields that are only for series, each with the x that it is for.
READ_WITH = {"at": (LATENESS, DELAY), "bin_s": (TIME,), "subscriber": (DELAY, TIME)}
BIN_S = 10.0

Scale = Literal["linear", "log"]
PositiveFinite = Annotated[float, Meta(gt=0, le=1e9)]


class About(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    title: str
    paper: str
    figure: str = ""  # empty: of no figure in the paper, but ours
    section: str
    x: str
    metrics: Annotated[tuple[str, ...], Meta(min_length=1)]
    scale: Scale = "linear"  # of x
    y_scale: Scale = "linear"
    settings: dict[str, str] = field(default_factory=dict)  # by name: what it is, in words
    lines: str = STRATEGY  # of the grid: each value is what claims and results call a strategy
    only: dict[str, dict[str, Any]] = field(default_factory=dict)  # by metric: values of the grid
    subscriber: str | None = None  # the one whose series it is; absent: all together
    at: Annotated[tuple[PositiveFinite, ...], Meta(min_length=1)] | None = None  # where it is read
    bin_s: PositiveFinite | None = None  # how long a stretch of time is

    def origin(self) -> str:
        """The paper, and which of its figures this is."""
        return (
            f"{self.paper}, {self.figure}" if self.figure else f"{self.paper}, beyond its figures"
        )

    def over(self) -> Over:
        """What the metrics of a run are spread over."""
        return SERIES_OVER.get(self.x, "run")

    def places(self) -> tuple[float, ...]:
        """Where a distribution is read; nowhere, if the figure shows none."""
        usual = {LATENESS: LATENESS_RATIOS, DELAY: DELAYS_S}
        return usual.get(self.x, ()) if self.at is None else self.at

    def stretch_s(self) -> float:
        """The length of a stretch of time; 0 if the figure is not about time."""
        return (self.bin_s or BIN_S) if self.x == TIME else 0.0
