"""Which run belongs to which line of a figure, and to which of its metrics."""

from math import nan
from pathlib import Path

import pandas as pd
from support.studies import GRID, STUDY, a_study, a_study_file

from tidings.pipeline.sweep.grid import points_of
from tidings.pipeline.sweep.measure import over_topologies
from tidings.studies.report import result_of
from tidings.studies.run import lines_of, rows_in_figure
from tidings.studies.spec import Study, read_study

A_CLAIM = """
[[claim]]
id = "more-often"
text = "Sent twice, more arrives"
paper = "more"
metric = "delivery_ratio"
strategy = "2"
minus = { strategy = "1" }
kind = "at least"
value = 0.0
"""


def by_transmissions(folder: Path) -> Study:
    study = STUDY + 'lines = "broker.transmissions"\n'
    grid = GRID.replace(
        '"broker.strategy" = ["d-tree", "r-tree"]', '"broker.transmissions" = [1, 2]'
    )
    return read_study(a_study_file(folder, study, grid, A_CLAIM))


def test_lines_are_made_by_the_parameter_that_the_study_names(tmp_path: Path) -> None:
    study = by_transmissions(tmp_path)
    assert study.strategies("") == ("1", "2")
    points = points_of(study.spec)
    told = lines_of(study, points)["strategy"]
    assert list(told) == [str(point.scenario.broker.transmissions) for point in points]


def test_routing_strategies_are_left_to_the_trace_rows(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    assert "strategy" not in lines_of(study, points_of(study.spec))


def test_the_result_tells_lines_apart_that_trace_rows_do_not(tmp_path: Path) -> None:
    study = by_transmissions(tmp_path)
    points = points_of(study.spec)
    rows = [
        (point.name, "d-tree", "delivery_ratio", nan, 0.4 * point.scenario.broker.transmissions)
        for point in points
    ]
    measured = pd.DataFrame(rows, columns=["run", "strategy", "metric", "at", "value"])
    result = result_of(study, points, over_topologies(measured, lines_of(study, points)))
    assert {(p.strategy, p.mean, p.runs) for p in result.points} == {("1", 0.4, 2), ("2", 0.8, 2)}
    assert [claim.verdict for claim in result.claims] == ["holds"]


def test_a_metric_is_taken_of_its_part_of_the_grid(tmp_path: Path) -> None:
    only = STUDY + 'only.delivery_ratio = { "links.loss_ratio" = 0.1 }\n'
    only += 'only.packets_per_subscriber = { "links.loss_ratio" = 0.0 }\n'
    grid = GRID.replace("[grid]", '[grid]\n"links.loss_ratio" = [0.0, 0.1]')
    study = read_study(a_study_file(tmp_path, only, grid))
    points = points_of(study.spec)
    rows = [(p.name, metric, p.scenario.links.loss_ratio) for p in points for metric in
            study.about.metrics]  # fmt: skip
    shown = rows_in_figure(pd.DataFrame(rows, columns=["run", "metric", "loss"]), study, points)
    assert len(shown) == len(points)
    assert set(zip(shown["metric"], shown["loss"], strict=True)) == {
        ("delivery_ratio", 0.1),
        ("packets_per_subscriber", 0.0),
    }
