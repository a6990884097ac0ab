"""Figures over delay and over time: where they are read, and what is asked of runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.studies import GRID, NAMED_SUBSCRIBERS, STUDY, a_study_file

from tidings.cli.screens.study import MAX_ROWS, metric_tables
from tidings.core.errors import ConfigError
from tidings.pipeline.analyse.question import DELAYS_S, Question
from tidings.pipeline.sweep.grid import points_of
from tidings.studies.figures.figure import draw
from tidings.studies.report import StudyResult, result_of
from tidings.studies.spec import Study, read_study

METRICS = '"delivery_ratio", "packets_per_subscriber"'
ONE_LOSS = GRID.replace('"links.failure_probability" = [0.0, 0.2, 0.4]', "").replace(
    '"links.failure_probability" = [0.0, 0.4]', ""
)
RUN = "[run]\nstart_s = 12\nseconds = 25\n"


def a_series(folder: Path, x: str, metrics: str, more: str = "", run: str = RUN) -> Study:
    study = STUDY.replace("links.failure_probability", x).replace(METRICS, metrics)
    path = a_study_file(folder, f"{study}{more}\n", ONE_LOSS, claims="")
    (folder / "tiny.toml").write_text(run + NAMED_SUBSCRIBERS)
    return read_study(path)


def over_time(folder: Path, more: str = "", run: str = RUN) -> Study:
    return a_series(folder, "time", '"delay_mean_s", "loss_ratio"', more, run)


def of_delays(folder: Path, more: str = "") -> Study:
    return a_series(folder, "delay", '"delay_cdf"', more)


def test_time_has_every_stretch_in_which_something_may_be_published(tmp_path: Path) -> None:
    study = over_time(tmp_path)
    assert study.xs("") == (10.0, 20.0, 30.0)  # from 12 s to 37 s
    assert study.question() == Question(("delay_mean_s", "loss_ratio"), "time", bin_s=10.0)
    shorter = over_time(tmp_path, "bin_s = 2.5")
    assert shorter.xs("") == tuple(2.5 * number for number in range(4, 15))
    assert over_time(tmp_path, run="[run]\nstart_s = 0\nseconds = 20\n").xs("") == (0.0, 10.0)


def test_a_quick_run_is_shorter(tmp_path: Path) -> None:
    over_time(tmp_path)
    assert read_study(tmp_path / "trees.toml", quick=True).xs("") == (10.0,)  # 2 s


def test_delays_are_read_where_the_study_says(tmp_path: Path) -> None:
    assert of_delays(tmp_path).xs("") == DELAYS_S
    assert (len(DELAYS_S), DELAYS_S[0], DELAYS_S[-1]) == (60, 0.005, 0.3)
    assert 0.105 in DELAYS_S  # as a claim would name it
    study = of_delays(tmp_path, "at = [0.05, 0.1]")
    assert study.xs("") == (0.05, 0.1)
    assert study.question() == Question(("delay_cdf",), "delay", (0.05, 0.1))


def test_one_subscriber_is_asked_for_by_its_id(tmp_path: Path) -> None:
    for study in (
        over_time(tmp_path, 'subscriber = "s5.t1"'),
        of_delays(tmp_path, 'subscriber = "s5.t1"'),
    ):
        assert study.question().subscription == "n5/s5:harmony/t1"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("bin_s = 0", r"study\.bin_s is 0"),
        ("bin_s = 0.001", r"study\.bin_s is 0\.001.*at most 10000 stretches of 25 s"),
        ("at = [0.1]", r"study\.at is .*unless x is lateness or delay"),
        ('subscriber = "s9.t1"', r"study\.subscriber is 's9\.t1'.*one of s1\.t1, s5\.t1"),
    ],
)
def test_a_fault_of_a_figure_over_time(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"trees\.toml: .*{said}"):
        over_time(tmp_path, more)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("at = []", r"study\.at is \[\]"),
        ("at = [0.2, 0.1]", r"study\.at is .*rise"),
        ("at = [-0.1, 0.1]", r"study\.at\[0\] is -0\.1"),
        ("bin_s = 1", r"study\.bin_s is 1\.0.*unless x is time"),
    ],
)
def test_a_fault_of_a_distribution(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"trees\.toml: .*{said}"):
        of_delays(tmp_path, more)


def a_result(study: Study, without: float) -> StudyResult:
    """Of a metric that is a hundredth of x; one x is missing."""
    rows = [
        ("", strategy, metric, x, x / 100)
        for strategy in study.strategies("")
        for metric in study.about.metrics
        for x in study.xs("")
        if x != without
    ]
    table = pd.DataFrame(rows, columns=["setting", "strategy", "metric", "x", "mean"])
    return result_of(study, points_of(study.spec), table.assign(ci=float("nan"), runs=1))


def test_over_time_a_curve_has_a_gap_where_nothing_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(
        Figure, "savefig", lambda self, path, **k: (figures.append(self), path.touch())
    )
    study = over_time(tmp_path, 'subscriber = "s5.t1"')
    draw(study, a_result(study, without=20.0), tmp_path / "figure.png")
    panel = figures[0].axes[0]
    curve = next(line for line in panel.lines if line.get_label() == "d-tree")
    assert list(curve.get_xdata()) == [10.0, 20.0, 30.0]
    assert np.array_equal(curve.get_ydata(), [0.1, np.nan, 0.3], equal_nan=True)
    assert panel.get_xlabel() == "published at, s since the run began"
    assert panel.get_ylim()[0] == 0
    assert ", s5.t1 (A paper, Figure 1)" in figures[0].get_suptitle()
    assert "confidence" not in figures[0].get_suptitle()  # one run has none


def test_a_long_series_is_printed_at_some_of_its_x(tmp_path: Path) -> None:
    study = of_delays(tmp_path)
    (table,) = metric_tables(a_result(study, without=0.3))
    assert MAX_ROWS / 2 <= table.row_count <= MAX_ROWS
    assert str(table.title).endswith(", one x of 2")
