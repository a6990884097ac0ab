"""The same commands on a real cluster, whose machines have only the folder of results in common
with the driver; and the loss of one of them in the middle."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.brief_spark import BRIEFLY, as_options
from support.standalone import HOST, Cluster, a_cluster
from support.sweeps import TINY_GRID, TINY_MAP, TINY_SCENARIO, a_spec, point_files

from tidings import CODE
from tidings.native_code import COMPILED
from tidings.pipeline.class_archive import archive_options
from tidings.pipeline.java import java_home
from tidings.pipeline.session import BRIEF
from tidings.pipeline.sweep.grid import points_of, read_spec
from tidings.scenarios.set_up import set_up
from tidings.sim.world import simulate
from tidings.traces import headline
from tidings.traces.points import finished_points

pytestmark = pytest.mark.timeout(900)

# What runs on machines that have only what they are sent: they run what this process runs.
THERE = CODE if CODE == COMPILED else "interpreted (it came without compiled code)"

WITHIN_S = 400.0  # a busy machine; a free one takes a tenth of it

MAPPED = TINY_SCENARIO.replace('"full-mesh"\nbrokers = 4', '"gml"\npath = "map.gml"')

# A second or two for each point, so that a worker can be lost in the middle of one.
SLOWER = TINY_SCENARIO.replace("seconds = 3", f"seconds = {800 if CODE == COMPILED else 400}")
MANY = '"run.seed" = { from = 1, count = 10 }'

SMALL = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": f"{BRIEF} {archive_options(java_home())}",
    **BRIEFLY,
    "spark.sql.shuffle.partitions": "2",
}
# Whatever takes longer than another gets a second try beside it, as soon as a core is free.
IMPATIENT = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.minTaskRuntime": "200ms",
}


# The commands that it reads, one after the other in one session: each session on a cluster starts
# three more JVMs. `places` says which code executors run, and where their package is.
DRIVER = """
import json, sys
from pyspark.sql.functions import udf
from tidings.cli.main import main
from tidings.cli.options import spark_settings
from tidings.pipeline.session import spark_session

def place(_):
    import tidings
    from tidings.sim import scenario, world
    return [tidings.CODE, scenario.__file__, world.__file__]

master, *conf = sys.argv[1:]
spark = spark_session(master, more=spark_settings(conf[1::2]))
for line in sys.stdin:
    command, code = json.loads(line), 0
    if command == ["places"]:
        rows = spark.range(0, 4, 1, 4).select(udf(place, "array<string>")("id").alias("place"))
        print(json.dumps([row.place for row in rows.distinct().collect()]))
    else:
        sys.argv = ["tidings", *command, "--master", master, *conf]
        try:
            main()
        except SystemExit as end:
            code = end.code
    print(f"ended with {code or 0}", flush=True)
"""


class Driver:
    """A process that runs commands on a cluster, in one session."""

    def __init__(self, process: "subprocess.Popen[str]", complaints: Path) -> None:
        self.process, self._complaints = process, complaints

    def begin(self, *command: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([*map(str, command)]) + "\n")
        self.process.stdin.flush()

    def said(self) -> list[str]:
        """What the command says until it has ended well."""
        assert self.process.stdout is not None
        lines = list[str]()
        for line in self.process.stdout:
            if line.startswith("ended with"):
                assert line == "ended with 0\n", self.complaints()
                return lines
            lines.append(line.rstrip("\n"))
        raise AssertionError(self.complaints())

    def run(self, *command: object) -> list[str]:
        self.begin(*command)
        return self.said()

    def complaints(self) -> str:
        return self._complaints.read_text()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def driver(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    complaints = tmp_path_factory.mktemp("driver") / "stderr"
    with complaints.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, cluster.master, *as_options(SMALL | IMPATIENT)],
            env=os.environ | {"SPARK_LOCAL_IP": HOST},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with process:
        try:
            yield Driver(process, complaints)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(timeout=WITHIN_S) == 0, complaints.read_text()
        finally:
            process.kill()


def local_digests(spec: Path) -> dict[str, str]:
    return {
        point.name: simulate(set_up(point.scenario)).digest for point in points_of(read_spec(spec))
    }


def digests(out: Path) -> dict[str, str]:
    return {row["point"]: row["digest"] for row in finished_points(out).to_pylist()}


def assert_no_row_is_there_twice(out: Path) -> None:
    published = headline.read_tables(out)["published"]
    expected = sum(finished_points(out)["publications"].to_pylist())
    assert published.num_rows == expected
    assert published.group_by(["run", "message"]).aggregate([]).num_rows == expected


def test_a_sweep_and_an_analysis_run_on_machines_without_tidings(
    cluster: Cluster, driver: Driver, tmp_path: Path
) -> None:
    spec, out = a_spec(tmp_path / "here", TINY_GRID, MAPPED), tmp_path / "shared"
    (spec.parent / "map.gml").write_text(TINY_MAP)
    [places] = driver.run("places")
    for code, source, hot in json.loads(places):
        assert code == THERE
        assert cluster.is_at_a_worker(source), source
        assert cluster.is_at_a_worker(hot), hot
        assert Path(hot).suffix == (".so" if code == COMPILED else ".py")
    [swept] = driver.run("sweep", spec, "--json", "--out", out)
    report = json.loads(swept)
    assert (report["ran"], report["failures"]) == (4, []), driver.complaints()
    assert report["code"] == {THERE: 4}
    assert digests(out) == local_digests(spec)
    assert {row["strategy"] for row in report["metrics"]} == {"d-tree", "r-tree"}
    assert any("Read 4 runs from" in line for line in driver.run("analyse", out))


def test_a_sweep_goes_on_without_a_worker_that_dies(
    cluster: Cluster, driver: Driver, tmp_path: Path
) -> None:
    spec, out = a_spec(tmp_path, MANY, SLOWER), tmp_path / "shared"
    driver.begin("sweep", spec, "--json", "--out", out)
    while len(point_files(out)) < 2 or cluster.executors() != [1, 1]:
        assert driver.process.poll() is None, driver.complaints()
        time.sleep(0.05)
    cluster.kill_last_worker()
    assert len(point_files(out)) < 9, "the sweep was almost over"
    [said] = driver.said()
    assert "Lost executor" in driver.complaints()
    report = json.loads(said)
    assert (report["ran"], report["failures"]) == (10, [])
    assert report["code"] == {THERE: 10}
    assert digests(out) == local_digests(spec)
    assert_no_row_is_there_twice(out)
