"""What stands in the figure of a study: words for settings, letters, units, deadlines, verdicts."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.studies import GRID, NAMED_SUBSCRIBERS, STUDY, a_study, a_study_file

from tidings.core.errors import ConfigError
from tidings.pipeline.sweep.grid import points_of
from tidings.studies.figures.figure import draw, picture
from tidings.studies.figures.formats import FORMATS
from tidings.studies.report import StudyResult, result_of
from tidings.studies.spec import Study, find_study, read_study, study_files

MAGIC = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<?xml"}
WORDS = """
[study.settings]
calm = "nothing is lost"
lossy = "a tenth is lost"
"""
SETTINGS = """
[setting.calm]
[setting.lossy]
"links.loss_ratio" = 0.1
"""
LISTED = """
[grid]
"broker.strategy" = ["d-tree", "r-tree"]
"run.seed" = [1, 2]
"""


def a_result(study: Study, mean: float = 0.5) -> StudyResult:
    """Of lines that all coincide."""
    rows = [
        (setting, strategy, metric, x, mean, 0.01, 2)
        for setting in study.settings()
        for strategy in study.strategies(setting)
        for metric in study.about.metrics
        for x in study.places(setting)
    ]
    columns = ["setting", "strategy", "metric", "x", "mean", "ci", "runs"]
    return result_of(study, points_of(study.spec), pd.DataFrame(rows, columns=columns))


def drawn(study: Study, mean: float = 0.5) -> Figure:
    figure = picture(study, a_result(study, mean))
    figure.draw_without_rendering()  # ticks are placed when it is drawn
    return figure


def over(folder: Path, x: str, *lines: str) -> Study:
    """A study of two listed subscribers, the second of whom wants messages within 50 ms."""
    about = STUDY.replace('"links.failure_probability"', f'"{x}"').partition("metrics")[0]
    path = a_study_file(folder, about + "\n".join(lines), LISTED, "")
    subscribers = NAMED_SUBSCRIBERS.replace('name = "s5"', 'name = "s5"\ndeadline_ms = 50')
    (folder / "tiny.toml").write_text(subscribers)
    return read_study(path)


def test_settings_are_explained_in_words_in_the_legend(tmp_path: Path) -> None:
    figure = drawn(read_study(a_study_file(tmp_path, STUDY + WORDS, more=SETTINGS)))
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "calm: nothing is lost\nlossy: a tenth is lost"
    named = [text.get_text() for text in legend.get_texts()]
    assert named[:4] == ["d-tree, calm", "r-tree, calm", "d-tree, lossy", "r-tree, lossy"]


def test_words_for_a_setting_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"study\.settings is 'calm'"):
        read_study(a_study_file(tmp_path, STUDY + WORDS, more="[setting.lossy]\n"))


@pytest.mark.parametrize("name", study_files())
def test_every_setting_of_every_study_has_its_words(name: str) -> None:
    study = read_study(find_study(name))
    assert tuple(study.about.settings) == tuple(study.spec.settings)


def test_lines_that_coincide_differ_in_dots_width_and_dashes(tmp_path: Path) -> None:
    panel = drawn(a_study(tmp_path, more=SETTINGS)).axes[0]
    curves = [line for line in panel.lines if "," in str(line.get_label())]
    assert len({tuple(line.get_ydata()) for line in curves}) == 1
    looks = {(line.get_marker(), line.get_linewidth(), line.get_linestyle()) for line in curves}
    assert len(looks) == len(curves) == 4
    first, second, *_ = curves  # two strategies: what is drawn later leaves the other to be seen
    assert first.get_linewidth() > second.get_linewidth()
    assert first.get_markersize() > second.get_markersize()


def test_panels_have_letters_and_say_what_y_is(tmp_path: Path) -> None:
    panels = drawn(a_study(tmp_path)).axes
    assert [panel.get_title() for panel in panels] == [
        "(a) delivered",
        "(b) packets per subscriber",
    ]
    assert [panel.get_ylabel() for panel in panels] == ["delivered", "packets per subscriber"]


def test_how_many_claims_hold_stands_in_the_figure(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    assert "; 0 of 3 claims hold" in drawn(study).get_suptitle()
    assert "; 3 of 3 claims hold" in drawn(study, mean=1.0).get_suptitle()
    quick = read_study(a_study_file(tmp_path), quick=True)
    assert "; 2 of 2 claims hold, 1 not judged" in drawn(quick, mean=1.0).get_suptitle()


def test_on_a_logarithmic_axis_there_are_dots_with_intervals_and_no_bars(tmp_path: Path) -> None:
    study = over(tmp_path, "subscriber", 'metrics = ["delay_mean_s"]', 'y_scale = "log"')
    panel = drawn(study, mean=0.02).axes[0]
    assert list(panel.patches) == []
    assert [dots[0].get_marker() for dots in panel.containers] == ["o", "s"]
    assert all(dots.has_yerr for dots in panel.containers)
    assert "20 ms" in {text.get_text() for text in panel.get_yticklabels()}


def test_on_a_linear_axis_there_are_bars(tmp_path: Path) -> None:
    study = over(tmp_path, "subscriber", 'metrics = ["delay_mean_s"]')
    assert len(drawn(study, mean=0.02).axes[0].patches) == 2 * 3  # strategies; s1, s5, their mean


def test_where_delay_is_upwards_the_deadline_lies_across(tmp_path: Path) -> None:
    figure = drawn(over(tmp_path, "subscriber", 'metrics = ["delay_mean_s"]'), mean=0.02)
    (deadline,) = [line for line in figure.axes[0].lines if "deadline" in str(line.get_label())]
    assert tuple(deadline.get_ydata()) == (0.05, 0.05)
    assert "deadline (50 ms)" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_where_delay_is_on_x_its_ticks_are_milliseconds_and_the_deadline_stands_upright(
    tmp_path: Path,
) -> None:
    chosen = ('metrics = ["delay_cdf"]', 'subscriber = "s5.t1"')
    panel = drawn(over(tmp_path, "delay", *chosen)).axes[0]
    (deadline,) = [line for line in panel.lines if "deadline" in str(line.get_label())]
    assert tuple(deadline.get_xdata()) == (0.05, 0.05)
    assert "100 ms" in {text.get_text() for text in panel.get_xticklabels()}


def test_a_subscriber_without_a_deadline_has_no_line(tmp_path: Path) -> None:
    chosen = ('metrics = ["delay_cdf"]', 'subscriber = "s1.t1"')
    panel = drawn(over(tmp_path, "delay", *chosen)).axes[0]
    assert not any("deadline" in str(line.get_label()) for line in panel.lines)


def test_ticks_of_a_logarithmic_x_are_the_places_of_the_study(tmp_path: Path) -> None:
    grid = GRID.replace("[0.0, 0.2, 0.4]", "[0.02, 0.2, 0.4]").replace("[0.0, 0.4]", "[0.02]")
    panel = drawn(read_study(a_study_file(tmp_path, STUDY + 'scale = "log"', grid, ""))).axes[0]
    assert [text.get_text() for text in panel.get_xticklabels()] == ["0.02", "0.2", "0.4"]


@pytest.mark.parametrize("format", FORMATS)
def test_each_format_is_what_its_name_says(format: str, tmp_path: Path) -> None:
    study = a_study(tmp_path)
    path = draw(study, a_result(study), tmp_path / f"figure.{format}")
    assert path.read_bytes().startswith(MAGIC[format])
    again = draw(study, a_result(study), tmp_path / f"again.{format}")
    assert format == "svg" or again.read_bytes() == path.read_bytes()  # svg: ids are drawn


def test_no_other_format_is_accepted(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    with pytest.raises(ConfigError, match="png, pdf"):
        draw(study, a_result(study), tmp_path / "figure.gif")
    assert not (tmp_path / "figure.gif").exists()
