"""What stands in the two pictures of an analysis."""

from math import inf

import pandas as pd
from matplotlib.figure import Figure

from tidings.pipeline.analyse.job import Analysis
from tidings.studies.figures.delays import delay_picture
from tidings.studies.figures.durations import duration_text
from tidings.studies.figures.strategies import picture


def an_analysis(*deadlines_s: float, study: pd.DataFrame | None = None) -> Analysis:
    """Two strategies that did exactly the same."""
    strategies = pd.DataFrame(
        {"run": "one", "strategy": ["d-tree", "dcrd"], "delivery_ratio": 0.9, "on_time_ratio": 0.8}
    )
    cdf = pd.DataFrame(
        [
            (strategy, at, share)
            for strategy in ("d-tree", "dcrd")
            for at, share in ((0.01, 0.2), (0.1, 0.7), (1.5, 1.0))
        ],
        columns=["strategy", "at", "share"],
    )
    tables = {name: pd.DataFrame() for name in Analysis.__struct_fields__}
    tables |= {"strategies": strategies, "delay_cdf": cdf, "study": study, "differences": None}
    tables["subscribers"] = pd.DataFrame({"deadline_s": [*deadlines_s]}, dtype=float)
    return Analysis(**tables)


def delays(*deadlines_s: float) -> Figure:
    figure = delay_picture(an_analysis(*deadlines_s))
    figure.draw_without_rendering()
    return figure


def test_a_time_is_written_as_people_say_it() -> None:
    written = [duration_text(s) for s in (0.0, 0.0005, 0.02, 0.3, 1.0, 1.5, 60.0)]
    assert written == ["0", "0.5 ms", "20 ms", "300 ms", "1 s", "1.5 s", "60 s"]


def test_delays_are_marked_in_milliseconds_and_seconds() -> None:
    marks = {text.get_text() for text in delays().axes[0].get_xticklabels()}
    assert {"10 ms", "20 ms", "1 s"} <= marks


def test_deadlines_are_drawn_and_named() -> None:
    panel = delays(0.2, 0.05, 0.2, inf).axes[0]
    named = [text.get_text() for text in panel.get_legend().get_texts()]
    assert named == ["d-tree", "dcrd", "deadline (50 ms, 200 ms)"]
    upright = [line for line in panel.lines if len(set(line.get_xdata())) == 1]
    assert [line.get_xdata()[0] for line in upright] == [0.05, 0.2]


def test_no_deadline_or_too_many_are_not_drawn() -> None:
    for deadlines_s in ((), (inf,), (1.0, 2.0, 3.0, 4.0, 5.0)):
        named = [text.get_text() for text in delays(*deadlines_s).axes[0].get_legend().get_texts()]
        assert named == ["d-tree", "dcrd"]


def test_curves_of_delay_that_coincide_differ_in_width_and_dashes() -> None:
    first, second = delays().axes[0].lines
    assert list(first.get_ydata()) == list(second.get_ydata())
    assert first.get_linewidth() > second.get_linewidth()
    assert first.get_linestyle() != second.get_linestyle()


def test_both_panels_of_ratios_have_a_letter_and_say_what_y_is() -> None:
    panels = picture(an_analysis()).axes
    assert [panel.get_title() for panel in panels] == ["(a) Delivered", "(b) Delivered in time"]
    assert {panel.get_ylabel() for panel in panels} == {
        "share of (message, interested subscription)"
    }
