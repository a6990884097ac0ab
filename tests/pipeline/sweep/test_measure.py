"""Every point is measured once, as its trace rows say, and again only when they change."""

import shutil
from math import isnan
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import typer
from pyspark.sql import SparkSession
from support.sweeps import a_spec, point_files
from typer.testing import CliRunner

from tidings.cli.sweep import sweep as sweep_command
from tidings.core.errors import TidingsError
from tidings.pipeline.analyse.job import study_of
from tidings.pipeline.analyse.question import Question
from tidings.pipeline.sweep import measure as job
from tidings.pipeline.sweep.grid import Point, points_of, read_spec
from tidings.pipeline.sweep.job import sweep
from tidings.pipeline.sweep.measure import measure, over_topologies
from tidings.pipeline.transforms.metrics import FIGURES
from tidings.traces import headline
from tidings.traces.files import parquet_files
from tidings.traces.points import POINT_SCHEMA, finished_points

pytestmark = pytest.mark.xdist_group("spark")

FIGURES_OF_RUNS = Question(FIGURES)


def silent(done: int, points: int) -> None:
    pass


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    return points_of(read_spec(a_spec(tmp_path_factory.mktemp("spec"))))


@pytest.fixture(scope="module")
def out(points: list[Point], spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    sweep(read_spec(a_spec(folder)), folder / "out", lambda: spark, silent)
    return folder / "out"


def test_points_are_measured_in_turns_as_the_headline_has_them(
    out: Path, points: list[Point], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = sorted(row["deliveries"] for row in finished_points(out).to_pylist())[-3:]
    monkeypatch.setattr(job, "DELIVERIES_AT_ONCE", sum(some))
    seen: list[tuple[int, int]] = []
    found = measure(
        lambda: spark, out, "tiny", points, FIGURES_OF_RUNS, lambda *now: seen.append(now)
    )
    assert seen == [(0, 4), (3, 4), (4, 4)]
    assert found[["at", "subscription"]].isna().all(axis=None)
    numbers = found.set_index(["run", "metric"])["value"]
    tables = headline.read_tables(out)
    for point in points:
        rows = {
            name: table.filter(pc.equal(table["run"], point.name)) for name, table in tables.items()
        }
        expected = headline.summary(rows)
        for metric in FIGURES:
            assert numbers[point.name, metric] == pytest.approx(getattr(expected, metric))


def test_what_is_measured_is_not_measured_again(
    out: Path, points: list[Point], spark: SparkSession
) -> None:
    first = measure(lambda: spark, out, "tiny", points, FIGURES_OF_RUNS, silent)
    again = measure(pytest.fail, out, "tiny", points, FIGURES_OF_RUNS, silent)
    pd.testing.assert_frame_equal(first, again)
    one = measure(pytest.fail, out, "tiny", points[:1], FIGURES_OF_RUNS, silent)
    assert set(one["run"]) == {points[0].name}


def test_another_question_is_measured_anew(
    out: Path, points: list[Point], spark: SparkSession
) -> None:
    for question in (
        Question(("delay_cdf",), "delay", (0.01, 0.02)),
        Question(("delay_cdf",), "delay", (0.01, 0.03)),
    ):
        found = measure(lambda: spark, out, "tiny", points[:1], question, silent)
        assert set(found["at"]) == set(question.at)
    measure(pytest.fail, out, "tiny", points[:1], question, silent)


@pytest.mark.parametrize(
    "other",
    [
        Question(("loss_ratio",), "time", bin_s=2.0),
        Question(("loss_ratio",), "time", bin_s=1.0, subscription="n1/s1:t"),
        Question(("delay_mean_s",), "time", bin_s=1.0),
        Question(("loss_ratio",), "subscriber", bin_s=1.0),
        Question(("loss_ratio",), "time", at=(0.1,), bin_s=1.0),
    ],
)
def test_questions_that_differ_at_all_are_told_apart(other: Question) -> None:
    assert job._maker(other) != job._maker(Question(("loss_ratio",), "time", bin_s=1.0))


def test_a_point_that_left_other_rows_is_measured_again(
    out: Path, points: list[Point], spark: SparkSession
) -> None:
    before = measure(lambda: spark, out, "tiny", points, FIGURES_OF_RUNS, silent)
    row = point_files(out)[0]
    table = pq.ParquetFile(row).read()
    column = table.schema.get_field_index("digest")
    pq.write_table(table.set_column(column, table.schema.field(column), [["other"]]), row)
    seen: list[tuple[int, int]] = []
    after = measure(
        lambda: spark, out, "tiny", points, FIGURES_OF_RUNS, lambda *now: seen.append(now)
    )
    assert seen[0] == (3, 4)
    pd.testing.assert_frame_equal(before, after)


def with_a_strange_study(out: Path, folder: Path) -> Path:
    """The folder, and a point of another study whose rows cannot be read."""
    shared = shutil.copytree(out, folder / "shared")
    row = pq.ParquetFile(point_files(shared)[0]).read().to_pylist()[0]
    strange = pa.Table.from_pylist([row | {"study": "strange", "point": "p"}], POINT_SCHEMA)
    (shared / "points" / "study=strange").mkdir()
    pq.write_table(strange, shared / "points" / "study=strange" / "p.parquet")
    (shared / "published" / "p.parquet").write_bytes(b"no rows")
    return shared


def test_the_table_of_a_study_is_made_of_its_own_points(
    out: Path, spark: SparkSession, tmp_path: Path
) -> None:
    alone = study_of(spark, out, "tiny")
    assert list(alone["seeds"]) == [2, 2]
    pd.testing.assert_frame_equal(
        study_of(spark, with_a_strange_study(out, tmp_path), "tiny"), alone
    )


def test_a_table_that_cannot_be_made_is_one_clear_error(
    out: Path, spark: SparkSession, tmp_path: Path
) -> None:
    folder = shutil.copytree(out, tmp_path / "broken")
    file = next(parquet_files(folder / "published"))
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)  # pages, not the footer
    file.write_bytes(content)
    with pytest.raises(TidingsError, match=f"Spark could not analyse {folder}"):
        study_of(spark, folder, "tiny")


def test_a_sweep_whose_table_fails_still_says_what_it_did(
    out: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise TidingsError("no table today")

    monkeypatch.setattr("tidings.pipeline.analyse.job.study_of", fail)
    command = typer.Typer()
    command.command()(sweep_command)
    result = CliRunner().invoke(command, [str(a_spec(tmp_path)), "--out", str(out), "--quiet"])
    assert "4 of 4 points are in" in result.output
    assert str(result.exception) == "no table today"


def test_means_over_topologies_with_their_confidence() -> None:
    measured = pd.DataFrame(
        [
            ("a", "dcrd", "on_time_ratio", None, 0.9),
            ("b", "dcrd", "on_time_ratio", None, 1.0),
            ("c", "dcrd", "on_time_ratio", None, 0.5),
            ("a", "dcrd", "lateness_cdf", 1.5, 0.25),
            ("b", "dcrd", "lateness_cdf", 1.5, None),  # nothing was late
        ],
        columns=["run", "strategy", "metric", "at", "value"],
    )
    lines = pd.DataFrame({"run": ["a", "b", "c"], "setting": "paper", "x": [0.1, 0.1, 0.2]})
    rows = over_topologies(measured, lines).to_dict("records")
    found = {(row["metric"], row["x"]): row for row in rows}
    both = found["on_time_ratio", 0.1]
    assert (both["mean"], both["runs"], both["setting"]) == (pytest.approx(0.95), 2, "paper")
    assert both["ci"] == pytest.approx(0.05 * 12.706, rel=1e-3)  # Student's t for two samples
    assert isnan(found["on_time_ratio", 0.2]["ci"])
    assert (found["lateness_cdf", 1.5]["mean"], found["lateness_cdf", 1.5]["runs"]) == (0.25, 1)


def test_means_of_subscribers_stand_under_their_labels() -> None:
    measured = pd.DataFrame(
        [
            ("a", "direct", "loss_ratio", "n1/s1:t", 0.1),
            ("b", "direct", "loss_ratio", "n1/s1:t", 0.3),
            ("a", "direct", "loss_ratio", None, 0.4),
            ("b", "direct", "loss_ratio", None, 0.8),
        ],
        columns=["run", "strategy", "metric", "subscription", "value"],
    ).assign(at=float("nan"))
    lines = pd.DataFrame({"run": ["a", "b"], "setting": "", "x": float("nan")})
    rows = over_topologies(measured, lines, {"n1/s1:t": "s1.t"}).to_dict("records")
    assert {row["x"]: (row["mean"], row["runs"]) for row in rows} == {
        "s1.t": (pytest.approx(0.2), 2),
        "mean": (pytest.approx(0.6), 2),
    }
    assert all(row["ci"] > 0 for row in rows)
