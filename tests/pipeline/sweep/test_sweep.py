"""A sweep runs what is missing, keeps what has finished, and never has a row twice."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pandas as pd
import pyarrow as pa
import pytest
import typer
from pyspark import TaskContext
from pyspark.sql import SparkSession
from support.sweeps import TINY_GRID, TINY_MAP, TINY_SCENARIO, a_spec, point_files
from typer.testing import CliRunner

from tidings import CODE
from tidings.cli.analyse import analyse
from tidings.cli.screens.code import simulated_by
from tidings.cli.sweep import _command
from tidings.cli.sweep import sweep as sweep_command
from tidings.core.errors import ConfigError, TidingsError
from tidings.pipeline.analyse.intervals import with_intervals
from tidings.pipeline.shipping import FilesToShip, unpacked
from tidings.pipeline.sweep import job, points
from tidings.pipeline.sweep.grid import Point, points_of, read_spec
from tidings.pipeline.sweep.points import DONE_SCHEMA, Task, run_task, run_tasks
from tidings.pipeline.trace_frames import read_traces
from tidings.pipeline.transforms.metrics import FIGURES
from tidings.scenarios.set_up import set_up
from tidings.sim.result import Result
from tidings.sim.scenario import LinkDefaults, Scenario
from tidings.sim.setup import Setup
from tidings.sim.world import simulate
from tidings.traces import headline, recorder
from tidings.traces.drafts import Drafts
from tidings.traces.points import finished_points

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


def silent(done: int, points: int) -> None:
    pass


@pytest.fixture(scope="module")
def swept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small sweep that has run to its end."""
    folder = tmp_path_factory.mktemp("sweep")
    seen: list[tuple[int, int]] = []
    spec = read_spec(a_spec(folder))
    report = job.sweep(spec, folder / "out", lambda: spark, lambda *now: seen.append(now))
    assert (report.points, report.kept, report.ran, report.failures) == (4, 0, 4, [])
    assert report.code == {CODE: 4}
    assert (seen[0], seen[-1]) == ((0, 4), (4, 4))
    return folder


def row_counts(out: Path) -> dict[str, int]:
    return {name: rows.num_rows for name, rows in headline.read_tables(out).items()}


def test_results_lie_where_they_are_looked_for(swept: Path) -> None:
    for point in points_of(read_spec(swept / "spec.toml")):
        place = f"study=tiny/strategy={point.scenario.broker.strategy}/{point.name}.parquet"
        for table in ("points", "published", "delivered", "carried"):
            assert (swept / "out" / table / place).is_file()
    assert not list((swept / "out").rglob(".*"))  # no draft is left, nor anything of Spark's


def test_a_point_leaves_the_rows_of_its_simulation(swept: Path) -> None:
    rows = {row["point"]: row for row in finished_points(swept / "out").to_pylist()}
    published = headline.read_tables(swept / "out")["published"].to_pandas()
    for point in points_of(read_spec(swept / "spec.toml")):
        result, row = simulate(set_up(point.scenario)), rows[point.name]
        assert row["digest"] == result.digest
        assert (row["publications"], row["hops"]) == (result.publications, result.hops)
        assert json.loads(row["parameters"]) == point.parameters
        assert (row["seed"], row["status"], row["error"]) == (
            point.scenario.run.seed,
            "finished",
            "",
        )
        assert (published["run"] == point.name).sum() == result.publications


def test_only_missing_points_run(swept: Path, spark: SparkSession) -> None:
    before, out = row_counts(swept / "out"), swept / "out"
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    spec = read_spec(swept / "spec.toml")
    report = job.sweep(spec, out, pytest.fail, silent)  # all is there: not even Spark starts
    assert (report.kept, report.ran) == (4, 0)
    gone = point_files(out)[0]
    gone.unlink()
    report = job.sweep(spec, out, lambda: spark, silent)
    assert (report.kept, report.ran) == (3, 1)
    assert row_counts(out) == before
    again = {path for path in times if path.stat().st_mtime_ns != times[path]}
    assert {path.stem for path in again} == {gone.stem}


def a_task(point: Point, out: Path) -> Task:
    parameters = msgspec.json.encode(point.parameters).decode()
    scenario = msgspec.msgpack.encode(point.scenario)
    return Task("tiny", point.name, parameters, scenario, str(out))


def test_a_task_that_is_tried_again_adds_no_rows(tmp_path: Path) -> None:
    task = a_task(points_of(read_spec(a_spec(tmp_path)))[0], tmp_path / "out")
    first = run_task(task)
    before = row_counts(tmp_path / "out")
    assert run_task(task) == first  # not even its seconds differ: it did not run again
    point_files(tmp_path / "out")[0].unlink()  # as if the first try had died just before the end
    second = run_task(task)
    assert row_counts(tmp_path / "out") == before
    assert first["digest"] == second["digest"]


def test_a_try_that_fails_does_not_hide_one_that_finished_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = a_task(points_of(read_spec(a_spec(tmp_path)))[0], tmp_path / "out")

    def overtaken(*_: object) -> None:
        monkeypatch.undo()
        run_task(task)
        raise OSError("no space left")

    monkeypatch.setattr("tidings.pipeline.sweep.points.simulate", overtaken)
    assert run_task(task)["status"] == "finished"
    assert finished_points(tmp_path / "out")["point"].to_pylist() == [task.point]


def test_a_try_that_fails_a_moment_after_another_finished_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = a_task(points_of(read_spec(a_spec(tmp_path)))[0], tmp_path / "out")
    sink = Drafts.sink

    def overtaken(drafts: Drafts, table: str, batch: pa.RecordBatch) -> None:
        """Everything was looked at, and only the row of the failure is still to be written."""
        sink(drafts, table, batch)
        if table == "points":
            monkeypatch.undo()
            run_task(task)

    def failing(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(points, "simulate", failing)
    monkeypatch.setattr(Drafts, "sink", overtaken)
    assert run_task(task)["status"] == "finished"
    assert finished_points(tmp_path / "out")["point"].to_pylist() == [task.point]
    assert not list((tmp_path / "out").rglob(".*"))


def test_the_row_of_a_failure_is_written_where_files_cannot_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlinkable(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    drafts = [Drafts(tmp_path, "p") for _ in range(2)]
    monkeypatch.setattr(os, "link", unlinkable)
    for draft in drafts:
        draft.sink("points", pa.RecordBatch.from_pydict({"a": [1]}))
    assert [draft.keep_new() for draft in drafts] == [True, False]
    assert [path.name for path in (tmp_path / "points").iterdir()] == ["p.parquet"]


@pytest.mark.parametrize(("tries", "status"), [(2, "failed"), (3, "finished"), (1, "finished")])
def test_the_last_of_several_tries_only_says_that_the_others_died(
    tries: int, status: str, tmp_path: Path
) -> None:
    """Where Spark makes one try only, that one runs."""
    task = a_task(points_of(read_spec(a_spec(tmp_path)))[0], tmp_path / "out")
    earlier = min(1, tries - 1)
    done = run_task(msgspec.structs.replace(task, tries=tries), earlier)
    assert done["status"] == status


def test_what_is_known_of_points_is_read_twice_however_many_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    look = job.parquet_files

    def counted(folder: Path) -> Iterator[Path]:
        looked.append(folder)
        return look(folder)

    monkeypatch.setattr(job, "parquet_files", counted)
    monkeypatch.setattr(job, "_run", lambda *_: Counter())
    job.sweep(read_spec(a_spec(tmp_path)), tmp_path / "out", pytest.fail, silent)
    assert len(looked) == 2


def test_the_command_to_go_on_names_the_same_cluster() -> None:
    conf = ["spark.executor.memory=2g", "spark.executor.extraJavaOptions=-Da -Db"]
    command = _command(Path("s.toml"), "out", "local[2]", conf)
    options = "--conf spark.executor.memory=2g --conf 'spark.executor.extraJavaOptions=-Da -Db'"
    assert command == f"tidings sweep s.toml --out out --master 'local[2]' {options}"
    assert _command(Path("s.toml"), "out", None, None) == "tidings sweep s.toml --out out"


def test_a_try_that_dies_halfway_leaves_no_rows_beside_those_of_the_next(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_rows = 10

    def dying_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """In an executor: the first try of each point ends in the middle of its rows."""
        written, whole, usual = 0, Drafts.sink, recorder.CHUNK_ROWS

        def sink(drafts: Drafts, table: str, batch: pa.RecordBatch) -> None:
            nonlocal written
            whole(drafts, table, batch)
            written += 1
            if written == 10 and TaskContext.get().attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        Drafts.sink, recorder.CHUNK_ROWS = sink, batch_rows
        try:
            yield from run_tasks(batches)
        finally:
            Drafts.sink, recorder.CHUNK_ROWS = whole, usual

    monkeypatch.setattr(job, "run_tasks", dying_once)
    spec, out = read_spec(a_spec(tmp_path, '"run.seed" = [1, 2]')), tmp_path / "out"
    report = job.sweep(spec, out, lambda: spark, silent)
    assert (report.ran, report.failures) == (2, [])
    assert len(list(out.glob("published/*/*/.*.parquet"))) == 2  # what the first tries had written
    monkeypatch.setattr(recorder, "CHUNK_ROWS", batch_rows)  # digests are taken batch by batch
    results = {point.name: simulate(set_up(point.scenario)) for point in points_of(spec)}
    found = {row["point"]: row["digest"] for row in finished_points(out).to_pylist()}
    assert found == {name: result.digest for name, result in results.items()}
    assert row_counts(out)["published"] == sum(result.publications for result in results.values())


def test_a_point_whose_process_dies_each_time_stops_no_other(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deadly(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """In an executor: as if the memory were never enough for the first seed."""

        def killed(setup: Setup, *others: Any) -> Result:
            if setup.scenario.run.seed == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return simulate(setup, *others)

        points.simulate = killed
        try:
            yield from run_tasks(batches)
        finally:
            points.simulate = simulate

    monkeypatch.setattr(job, "run_tasks", deadly)
    spec = read_spec(a_spec(tmp_path, '"run.seed" = [1, 2, 3]'))
    report = job.sweep(spec, tmp_path / "out", lambda: spark, silent)
    assert report.ran == 2
    (failure,) = report.failures
    assert failure["seed"] == 1
    assert "3 tries ended without a word" in failure["error"]


def test_files_that_a_scenario_names_travel_with_it(tmp_path: Path, spark: SparkSession) -> None:
    mapped = TINY_SCENARIO.replace('"full-mesh"\nbrokers = 4', '"gml"\npath = "map.gml"')
    map_file = tmp_path / "map.gml"
    map_file.write_text(TINY_MAP)
    spec = read_spec(a_spec(tmp_path, TINY_GRID, mapped))
    expected = {point.name: simulate(set_up(point.scenario)).digest for point in points_of(spec)}

    def session() -> SparkSession:
        map_file.unlink()  # executors on other machines do not see it either
        return spark

    report = job.sweep(spec, tmp_path / "out", session, silent)
    assert (report.ran, report.failures) == (4, [])
    rows = finished_points(tmp_path / "out").to_pylist()
    assert {row["point"]: row["digest"] for row in rows} == expected


def test_a_learned_model_travels_too(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "weather.parquet").write_bytes(b"of any content")
    files_to_ship = FilesToShip()
    scenario = Scenario(links=LinkDefaults(model="weather.parquet"), folder=str(tmp_path))
    packed = files_to_ship.packed(scenario)
    (tmp_path / "weather.parquet").write_bytes(b"of another")
    files_to_ship.hand_over(spark.sparkContext)
    assert Path(unpacked(packed).links.model).read_bytes() == b"of any content"


def test_a_folder_that_executors_do_not_share_is_a_clear_error(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """In an executor whose disk is its own: what it writes is not seen by the driver."""
        for _ in batches:
            yield pa.RecordBatch.from_pylist([], schema=DONE_SCHEMA)

    monkeypatch.setattr(job, "run_tasks", elsewhere)
    monkeypatch.setattr(job, "SEEN_WITHIN_S", 0.5)
    with pytest.raises(ConfigError, match=r"--out: .* a folder that this machine shares with all"):
        job.sweep(read_spec(a_spec(tmp_path)), tmp_path / "out", lambda: spark, silent)


def test_rows_of_a_point_that_did_not_finish_are_passed_over(
    tmp_path: Path, spark: SparkSession
) -> None:
    kept, cut = points_of(read_spec(a_spec(tmp_path)))[:2]
    for point in (kept, cut):
        run_task(a_task(point, tmp_path))
    next(path for path in point_files(tmp_path) if path.stem == cut.name).unlink()
    (found,) = read_traces(spark, tmp_path)["published"].select("run").distinct().collect()
    assert found.run == kept.name


def failing(grid: list[Point]) -> list[Point]:
    """The first point asks for what no check has seen: a policy that does not exist."""
    first, *others = grid
    broker = msgspec.structs.replace(first.scenario.broker, scheduling="magic")
    scenario = msgspec.structs.replace(first.scenario, broker=broker)
    return [msgspec.structs.replace(first, scenario=scenario), *others]


def test_a_point_that_fails_is_reported_and_stops_no_other(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "points_of", lambda spec: failing(points_of(spec)))
    app = typer.Typer()
    app.command()(sweep_command)
    arguments = [str(a_spec(tmp_path)), "--out", str(tmp_path / "out"), "--master", "local[2]"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "3 of 4 points are in" in result.stdout
    assert simulated_by({CODE: 4}) in result.stdout
    assert f"scenario {tmp_path / 'tiny.toml'}, seed 1" in result.stderr
    assert "broker.scheduling is 'magic'" in result.stderr
    monkeypatch.undo()
    report = job.sweep(read_spec(tmp_path / "spec.toml"), tmp_path / "out", lambda: spark, silent)
    assert (report.kept, report.ran, report.failures) == (3, 1, [])


def test_a_sweep_that_spark_cannot_run_says_so(tmp_path: Path) -> None:
    class Broken:
        def __getattr__(self, name: str) -> None:
            raise RuntimeError("no executor\nand a long story")

    with pytest.raises(TidingsError, match=r"no executor\. The points that finished are kept"):
        job.sweep(read_spec(a_spec(tmp_path)), tmp_path / "out", Broken, silent)


def test_what_python_says_on_an_executor_reaches_the_person(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def incomplete(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ModuleNotFoundError("No module named 'msgspec'")

    monkeypatch.setattr(job, "run_tasks", incomplete)
    with pytest.raises(TidingsError, match=r"ModuleNotFoundError: No module named 'msgspec'\. The"):
        job.sweep(read_spec(a_spec(tmp_path)), tmp_path / "out", lambda: spark, silent)


@pytest.fixture(scope="module")
def analysed(swept: Path) -> dict[str, Any]:
    """What `tidings analyse` prints of the sweep; its tables are in `swept / "tables"`."""
    app = typer.Typer()
    app.command()(analyse)
    places = [str(swept / "out"), "--out", str(swept / "tables")]
    result = CliRunner().invoke(app, [*places, "--master", "local[2]", "--json"])
    assert result.exit_code == 0, result.output
    return cast("dict[str, Any]", json.loads(result.stdout))


def test_a_study_has_means_over_seeds_and_their_confidence(analysed: dict[str, Any]) -> None:
    strategies = pd.DataFrame(analysed["strategies"])
    assert [row["strategy"] for row in analysed["study"]] == ["d-tree", "r-tree"]
    for row in analysed["study"]:
        runs = strategies[strategies["strategy"] == row["strategy"]]
        ratios = runs["delivery_ratio"]
        assert row["seeds"] == len(runs) == 2
        assert row["delivery_ratio"] == pytest.approx(ratios.mean())
        half = abs(ratios.iloc[0] - ratios.iloc[1]) / 2 * 12.706  # Student's t for two samples
        assert row["delivery_ratio_interval"] == pytest.approx(half, rel=1e-3)


def test_swept_parameters_become_columns_of_numbers_and_constant_ones_none() -> None:
    settings = [f'{{"links.loss_ratio":"{ratio}","run.seconds":"5"}}' for ratio in (0.1, 0.02)]
    means = pd.DataFrame({"study": "s", "strategy": "d-tree", "setting": settings, "seeds": [1, 3]})
    for name in FIGURES:
        means[name], means[f"{name}_deviation"], means[f"{name}_count"] = 0.5, 0.1, [1, 3]
    means.loc[1, "delay_p50_s_count"] = 2  # in one of three runs nothing was delivered
    study = with_intervals(means)
    assert list(study.columns[:4]) == ["study", "strategy", "links.loss_ratio", "seeds"]
    assert list(study["links.loss_ratio"]) == [0.02, 0.1]
    assert study["on_time_ratio_interval"].iloc[0] == pytest.approx(0.1 * 4.303 / 3**0.5, rel=1e-3)
    assert study["delay_p50_s_interval"].iloc[0] == pytest.approx(0.1 * 12.706 / 2**0.5, rel=1e-3)
    assert pd.isna(study["on_time_ratio_interval"].iloc[1])  # one seed says nothing about spread


def test_analyse_prints_json_and_leaves_tables_and_a_picture(
    analysed: dict[str, Any], swept: Path
) -> None:
    assert {row["strategy"] for row in analysed["study"]} == {"d-tree", "r-tree"}
    assert {Path(path).name for path in analysed["written"]} >= {"study.csv", "strategies.parquet"}
    read = pd.read_csv(swept / "tables" / "strategies.csv")
    ratios = [row["delivery_ratio"] for row in analysed["strategies"]]
    assert list(read["delivery_ratio"]) == pytest.approx(ratios)  # sums may differ in a last digit
    assert (swept / "tables" / "delivery.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
