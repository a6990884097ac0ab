"""Subscribers on the x axis: their labels, what can be claimed of them, and their bars."""

import json
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.studies import NAMED_SUBSCRIBERS

from tidings.core.errors import ConfigError
from tidings.pipeline.analyse.question import Question
from tidings.pipeline.sweep.grid import points_of
from tidings.studies.figures.figure import draw
from tidings.studies.report import StudyResult, result_of, write
from tidings.studies.spec import Study, read_study

SCENARIO = f"""{NAMED_SUBSCRIBERS}[[workload.subscriber]]
broker = "n5"
topic = "harmony/#"
"""
STUDY = """
scenario = "five.toml"
[study]
title = "Loss by subscriber"
paper = "A paper"
figure = "Figure 6"
section = "3.3"
x = "subscriber"
metrics = ["loss_ratio"]
y_scale = "log"
[grid]
"broker.strategy" = ["direct", "d-tree"]
"run.seed" = [1, 2]
"""
CLAIM = """
[[claim]]
id = "one"
text = "says the paper"
paper = 0.1
metric = "loss_ratio"
strategy = "direct"
kind = "near"
"""
TWO_HOMES = """
[setting.near]
[setting.far]
"workload.subscriber" = [ { name = "s1", broker = "n4", topic = "harmony/t1" } ]
"""


def a_study(folder: Path, more: str = "", scenario: str = SCENARIO, study: str = STUDY) -> Study:
    (folder / "five.toml").write_text(scenario)
    (folder / "loss.toml").write_text(study + more)
    return read_study(folder / "loss.toml")


def a_result(study: Study) -> StudyResult:
    """Of direct 0.1 everywhere, of d-tree nothing but at s5.t1."""
    rows = [
        (setting, strategy, "loss_ratio", x, 0.1 if strategy == "direct" else 0.02 * (x == "s5.t1"))
        for setting in study.settings()
        for strategy in study.strategies(setting)
        for x in study.places(setting)
    ]
    table = pd.DataFrame(rows, columns=["setting", "strategy", "metric", "x", "mean"])
    return result_of(study, points_of(study.spec), table.assign(ci=0.01, runs=2))


def test_a_label_is_the_client_and_the_last_level_of_its_filter(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    assert study.xs("") == ("s1.t1", "s5.t1", "s3.#")  # the third has no name of its own
    assert study.places("") == (*study.xs(""), "mean")
    assert study.axis.labels["n5/s5:harmony/t1"] == "s5.t1"
    assert study.question() == Question(("loss_ratio",), "subscriber")


def test_a_label_that_would_mean_two_is_the_whole_id(tmp_path: Path) -> None:
    twins = SCENARIO.replace('topic = "harmony/#"', 'name = "s5"\ntopic = "other/t1"')
    assert a_study(tmp_path, scenario=twins).xs("") == (
        "s1.t1",
        "n5/s5:harmony/t1",
        "n5/s5:other/t1",
    )
    moved = a_study(tmp_path, TWO_HOMES)
    assert moved.xs("far") == ("n4/s1:harmony/t1",)
    assert moved.xs("near")[:2] == ("n1/s1:harmony/t1", "s5.t1")


def test_subscribers_that_are_drawn_have_no_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"loss\.toml: scenario is .*lists subscribers, as drawn"):
        a_study(tmp_path, scenario='[topology]\nkind = "harmony"\n[workload]\ntopics = 2\n')


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("x = 0.1", r"claim one: x is 0\.1.*s1\.t1, s5\.t1, s3\.#, mean"),
        ('x = ["s5.t1", "s9.t1"]', r"claim one: x is 's9\.t1'"),
        ('minus = { x = "all" }', r"claim one: x is 'all'"),
        ('metric = "delay_mean_s"', r"claim one: metric is 'delay_mean_s'"),
        *((f'kind = "{kind}"', rf"claim one: kind is '{kind}'.*no order")
          for kind in ("rising", "falling", "flat", "peaking")),
    ],
)  # fmt: skip
def test_a_claim_that_makes_no_sense_of_subscribers(change: str, said: str, tmp_path: Path) -> None:
    field = change.partition(" = ")[0]
    kept = "\n".join(line for line in CLAIM.splitlines() if not line.startswith(f"{field} ="))
    with pytest.raises(ConfigError, match=rf"loss\.toml: .*{said}"):
        a_study(tmp_path, f"{kept}\n{change}\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("y_scale", "scale"), r"study\.scale is 'log'.*linear"),
        (('["loss_ratio"]', '["earnings"]'), r"metrics is 'earnings'.*delay_mean_s, loss_ratio"),
        (('y_scale = "log"', "bin_s = 2"), r"study\.bin_s is 2\.0.*nothing, unless x is time"),
        (('y_scale = "log"', "at = [0.1]"), r"study\.at is .*unless x is lateness or delay"),
        (('y_scale = "log"', 'subscriber = "s5.t1"'), r"subscriber is 's5\.t1'.*delay or time"),
    ],
)
def test_a_figure_that_makes_no_sense_of_subscribers(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"loss\.toml: .*{said}"):
        a_study(tmp_path, study=STUDY.replace(*change))


@pytest.mark.parametrize(
    ("x", "verdict", "where"),
    [
        ("", "does not hold", "d-tree at s1.t1"),  # every subscriber, but not their mean
        ('x = "s5.t1"', "holds", "d-tree at s5.t1"),
        ('x = "mean"', "does not hold", "d-tree at mean"),
        ('x = ["s5.t1", "mean"]', "does not hold", "d-tree at mean"),
        ('x = "s5.t1"\nover = { strategy = "direct" }', "holds", "0.200 times (d-tree at s5.t1;"),
    ],
)
def test_a_claim_names_subscribers_or_their_mean(
    x: str, verdict: str, where: str, tmp_path: Path
) -> None:
    claim = CLAIM.replace('"direct"', '"d-tree"').replace("0.1", "0.01").replace("near", "at least")
    finding = a_result(a_study(tmp_path, f"{claim}{x}\n")).claims[0]
    assert finding.verdict == verdict
    assert where in finding.why


def test_points_are_told_under_their_labels(tmp_path: Path) -> None:
    result = a_result(a_study(tmp_path))
    read = json.loads(write(result, tmp_path / "r.json").read_text())["points"]
    assert [(p["strategy"], p["x"]) for p in read] == [
        (strategy, x)
        for strategy in ("direct", "d-tree")
        for x in ("s1.t1", "s5.t1", "s3.#", "mean")
    ]


def test_dots_stand_in_groups_and_nothing_is_written_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k))[1]
    )
    study = a_study(tmp_path, CLAIM + 'x = "s5.t1"\n')
    draw(study, a_result(study), tmp_path / "figure.png")
    (panel,) = figures[0].axes
    names = [text.get_text() for text in panel.get_xticklabels()]
    ticks = dict(zip(names, panel.get_xticks(), strict=True))
    assert list(ticks) == ["s1.t1", "s5.t1", "s3.#", "mean"]
    dots = [dot for line in panel.containers for dot in zip(*line[0].get_data(), strict=True)]
    beside = ticks["s5.t1"]
    near = [height for at, height in sorted(dots) if abs(at - beside) < 0.5]
    assert near == [0.1, 0.02]
    assert [text.get_text() for text in panel.texts] == ["0", "0", "0"]
    assert panel.get_yscale() == "log"
    assert 0 < panel.get_ylim()[0] < 0.02
    (star,) = [line for line in panel.lines if line.get_marker() == "*"]
    assert star.get_xdata()[0] == pytest.approx(min(at for at, _ in dots if abs(at - beside) < 0.5))
