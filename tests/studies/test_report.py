"""Means become one object with every claim judged, and a figure that says what made it."""

import json
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.studies import a_study, a_study_file

from tidings.pipeline.sweep.grid import points_of
from tidings.studies.figures.figure import draw
from tidings.studies.report import StudyResult, result_of, write
from tidings.studies.spec import Study, read_study

PNG = b"\x89PNG\r\n\x1a\n"
SETTINGS = """
[setting.calm]
[setting.lossy]
"links.loss_ratio" = 0.1
"broker.strategy" = ["d-tree"]
"""


def a_table(study: Study) -> pd.DataFrame:
    """Falling with x, in an order that is not the study's, with a metric that it does not show."""
    rows = [
        (setting, strategy, metric, x, 1.0 - x, 0.01, 2)
        for setting in study.settings()
        for strategy in reversed(study.strategies(setting))
        for metric in ("packets_per_subscriber", "delivery_ratio", "delay_p50_s")
        for x in study.xs(setting)
    ]
    return pd.DataFrame(rows, columns=["setting", "strategy", "metric", "x", "mean", "ci", "runs"])


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return a_study(tmp_path)


def a_result(study: Study, table: pd.DataFrame | None = None) -> StudyResult:
    return result_of(study, points_of(study.spec), a_table(study) if table is None else table)


def test_points_are_in_the_order_of_the_study(study: Study) -> None:
    points = a_result(study).points
    assert [(p.metric, p.strategy, p.x) for p in points] == [
        (metric, strategy, x)
        for metric in ("delivery_ratio", "packets_per_subscriber")
        for strategy in ("d-tree", "r-tree")
        for x in (0.0, 0.2, 0.4)
    ]


def test_every_claim_is_judged(study: Study) -> None:
    verdicts = {claim.id: claim.verdict for claim in a_result(study).claims}
    assert verdicts == {
        "all-without-failures": "holds",
        "all-with-failures": "does not hold",
        "in-between": "holds",
    }


def test_points_that_are_missing_leave_claims_unjudged(study: Study) -> None:
    table = a_table(study)
    result = a_result(study, table[table["x"] != 0.2])
    assert [claim.verdict for claim in result.claims][-1] == "not judged"
    assert len(result.points) == 8


def test_the_object_is_written_as_json(study: Study, tmp_path: Path) -> None:
    table = a_table(study)
    table["ci"] = float("nan")  # one run
    read = json.loads(write(a_result(study, table), tmp_path / "r.json").read_text())
    assert (read["study"], read["quick"], read["topologies"]) == ("trees", False, 2)
    assert read["points"][1] == {
        "strategy": "d-tree", "x": 0.2, "metric": "delivery_ratio", "mean": 0.8, "ci": None,
        "runs": 2,
    }  # fmt: skip
    claim = read["claims"][1]
    told = "id section text paper ours verdict why mean_of_ratios"
    assert set(claim) == set(told.split())
    assert (claim["paper"], claim["verdict"]) == ("no harm", "does not hold")
    assert claim["why"].endswith("Trees never reroute.")


def test_settings_are_told_where_there_are_some(tmp_path: Path) -> None:
    points = a_result(a_study(tmp_path, more=SETTINGS)).points
    assert {(p.setting, p.strategy) for p in points} == {
        ("calm", "d-tree"),
        ("calm", "r-tree"),
        ("lossy", "d-tree"),
    }


@pytest.mark.parametrize("more", ["", SETTINGS])
def test_the_figure_says_what_made_it(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k))[1]
    )
    study = a_study(tmp_path, more=more)
    path = draw(study, a_result(study), tmp_path / "figure.png")
    assert path.read_bytes()[:8] == PNG
    (figure,) = figures
    assert "full run: 2 seeds, 0.05 min" in figure.get_suptitle()
    panel = figure.axes[0]
    curves = [line for line in panel.lines if line.get_label() in ("d-tree", "d-tree, calm")]
    assert [tuple(line.get_ydata()) for line in curves] == [(1.0, 0.8, 0.6)]
    stars = [line for line in panel.lines if line.get_marker() == "*"]
    assert sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in stars) == [
        (0.0, 1.0), (0.0, 1.0), (0.2, 0.8),
    ]  # fmt: skip
    assert [text.get_text() for text in figure.legends[0].get_texts()][-2:] == [
        "A paper: stated",
        "A paper: at least",
    ]


def test_a_quick_result_says_so(tmp_path: Path) -> None:
    result = a_result(read_study(a_study_file(tmp_path), quick=True))
    assert result.quick
    assert result.made_by() == "quick run: 2 seeds, 0.0333333 min of simulated time each"
