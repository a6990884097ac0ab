"""Whatever the width of the screen, no number of a table is cut, and long names can be read."""

import re
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console, RenderableType

from tidings.cli.learn import _prediction_table
from tidings.cli.screens.analysis import _cost_table
from tidings.cli.screens.sheet import COPIED_WHOLE, Sheet, folded
from tidings.cli.screens.study import metric_tables
from tidings.cli.screens.tables import metrics_table, study_table
from tidings.cli.screens.up import show_brokers
from tidings.cli.screens.watch import TableScreen
from tidings.live.clock import wall_clock
from tidings.pipeline.learn.job import Lesson
from tidings.pipeline.transforms.cost import PARTS
from tidings.pipeline.transforms.windows import Window
from tidings.scenarios.read import parse
from tidings.scenarios.set_up import set_up
from tidings.studies.report import Mean, StudyResult
from tidings.testbed.overlay import Overlay
from tidings.testbed.plan import plan

WIDTHS = (40, 60, 80, 120)
TOPIC = "n12/s5.t1:harmony/building-7/floor-12/[room-1204]/temperature/raw/averaged-over-a-minute"


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def shown(width: int, *what: RenderableType) -> str:
    said = StringIO()
    console = Console(file=said, width=width)
    for one in what:
        console.print(one)
    text = said.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    return text


def some_metrics(name: str) -> dict[str, object]:
    return {
        "run": name,
        "strategy": "qos-multipath",
        "expected": 1234567,
        "delivery_ratio": 0.99123,
        "on_time_ratio": 0.98765,
        "earnings": 7654321.0,
        "packets_per_subscriber": 12.345,
        "deadline_s": 0.2345,
        "delay_p50_s": 0.0186,
        "delay_p95_s": 1.2342,
    }


FIGURES = ("1234567", "99.12", "98.77", "7654321", "12.35", "234.5", "18.6", "1234.2")


@pytest.mark.parametrize("name", ["mesh20-0123456789abcdef", TOPIC, "x" * 200])
def test_every_number_of_a_run_is_whole(name: str, width: int) -> None:
    rows = [some_metrics(name) for _ in range(3)]
    text = shown(width, metrics_table("Runs", rows, ["run", "strategy", "expected"]))
    for figure in FIGURES:
        assert text.split().count(figure) == 3, figure
    words = [word for word in re.split("[/:-]", name) if len(word) <= COPIED_WHOLE]
    assert all(text.count(word) >= 3 for word in words)


def test_the_headline_of_an_analysis_is_a_table_in_80_columns() -> None:
    text = shown(80, metrics_table("Runs", [some_metrics("mesh20-0123")], ["run", "strategy"]))
    (row,) = (line for line in text.splitlines() if "99.12" in line)
    assert "18.6" in row.split()


def test_every_number_of_a_sweep_is_whole(width: int) -> None:
    row = {"study": "s", "strategy": "d-tree", "links.failure_probability": 1e-05, "seeds": 10}
    row |= some_metrics("r") | {f"{name}_interval": 0.01234 for name in ("delivery_ratio",)}
    rows = [row, row | {"strategy": "qos-multipath", "links.failure_probability": 0.25}]
    frame = pd.DataFrame(rows).drop(columns=["run", "expected", "deadline_s"])
    text = shown(width, study_table("s", frame)).split()
    assert text.count("99.12±1.23") == 2
    assert {"1e-05", "0.25", "7654321", "12.35", "18.6", "1234.2"} <= set(text)


def test_every_number_of_costs_and_predictions_is_whole(width: int) -> None:
    costs = pd.DataFrame(
        {
            "part": PARTS,
            "frames_per_delivery": [1234567.891] * len(PARTS),
            "bytes_per_delivery": [98765432.109] * len(PARTS),
        }
    )
    errors = {"slices": 7654321, "mae_ms": 123456.78, "rmse_ms": 234567.89}
    predicted = pd.DataFrame([{"horizon": 100, "predictor": "exponentially weighted", **errors}])
    text = shown(width, _cost_table(costs), _prediction_table(Lesson([], predicted, 60.0))).split()
    assert text.count("1,234,567.89") == text.count("98,765,432.11") == len(PARTS)
    assert {"100", "7,654,321", "123456.78", "234567.89"} <= set(text)


def test_every_number_of_a_watch_is_whole(width: int, tmp_path: Path) -> None:
    said = StringIO()
    console = Console(file=said, width=width)
    at = 1_750_000_000.0
    screen = TableScreen(console, tmp_path, 0.5)
    screen.show(
        [Window("r", TOPIC, 12.3456, at, at + 10, 1234567, 8, 8, 2, 0.12345, 0.87654, 3.4567)]
    )
    text = shown(width, screen._sheet("The last windows")).split()
    figures = {"15:06:40", "15:06:50", "1,234,567", "12.35", "87.65", "3456.7", "12345.6"}
    assert figures <= set(text)


def test_every_number_of_a_study_is_whole(width: int) -> None:
    settings = ("as-stated-in-the-paper", "with-neighbours-in-another-order")
    points = [
        Mean(strategy, x, "delay_mean_s", 1234.5678, 0.0123, 10, setting)
        for x in (0.0001, 25.0)
        for strategy in ("d-tree", "qos-multipath", "dcrd", "oracle")
        for setting in settings
    ]
    result = StudyResult("s", False, "t", "p", "Figure 1", 10, 60.0, points, [])
    text = shown(width, *metric_tables(result)).split()
    assert text.count("1234567.8±12.3") == len(points)
    assert {"0.0001", "25"} <= set(text)


def test_every_port_of_an_overlay_is_whole(width: int, tmp_path: Path) -> None:
    document = {"topology": {"kind": "full-mesh", "brokers": 20}, "live": {"mqtt_port": 0}}
    planned = plan(set_up(parse(document, "test", ".")), "r", tmp_path / "traces")
    overlay = Overlay(planned.brokers, tmp_path / "brokers", wall_clock())
    for number, broker in enumerate(overlay.brokers.values()):
        broker.mqtt_port = 10_000 + number
    said = StringIO()
    show_brokers(Console(file=said, width=width), planned, overlay)
    assert {str(10_000 + number) for number in range(20)} <= set(said.getvalue().split())


def test_a_number_is_whole_even_beside_headings_wider_than_the_screen() -> None:
    sheet = Sheet("a title")
    sheet.add_numbers("h" * 100, "one two three four five six seven eight nine ten")
    sheet.add_row("1,234,567.89", "0.000001")
    assert {"1,234,567.89", "0.000001"} <= set(shown(40, sheet).split())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a/bc/def", ["a/bc/", "def"]),
        ("n1/s5.t1:x/y", ["n1/", "s5.t1:", "x/y"]),
        ("abcdefgh", ["abcdef", "gh"]),
        ("one two six", ["one", "two", "six"]),
        ("r-tree", ["r-tree"]),
        ("qos-multi", ["qos-", "multi"]),
        ("x 1e-05", ["x", "1e-05"]),
        ("12:30", ["12:30"]),
        ("", [""]),
    ],
)
def test_a_long_name_is_broken_where_a_reader_breaks_it(text: str, lines: list[str]) -> None:
    assert folded(text, 6).split("\n") == lines
