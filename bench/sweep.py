"""How much faster is a sweep on two cores than the same runs one after another?

Forty seeds of the 20-broker mesh, as `tidings sweep` runs them in local mode on two cores, and as
one process runs them one by one, without Spark. Both go through the same function for a point, so
both write the same Parquet files, which are compared by their digests. Two free cores would give
0.5; what is above is Spark's hand-over, and that the last core to finish is waited for.

Spark's start-up is left out and reported apart: the JVM, the session, and a first job that starts
the Python workers. Processor seconds stand beside the seconds that passed: on a machine that others
use, the ratio of the latter says little about two free cores. To compare the sweep with that of
another day or another state of the code, they are also given in bare SimPy timeouts, timed in this
run.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
import pyarrow as pa
from _processes import family_cpu_s
from _report import Line, line, run
from _simulated import timeouts_per_s
from pyspark.sql import SparkSession

from tidings.pipeline.session import spark_session
from tidings.pipeline.shipping import FilesToShip
from tidings.pipeline.sweep.grid import Spec, points_of
from tidings.pipeline.sweep.job import sweep, task_of
from tidings.pipeline.sweep.points import run_task
from tidings.traces.points import finished_points

SCENARIO = Path(__file__).parents[1] / "scenarios" / "mesh20.toml"
RUNS, CORES = 40, 2
SECONDS, QUICK_SECONDS = 600.0, 60.0  # of publishing, in each run
TARGET_RATIO = 0.65


class Cost(msgspec.Struct, frozen=True):
    """Seconds that passed, and seconds of processors."""

    seconds: float
    cpu_s: float


def measured(quick: bool) -> list[Line]:
    grid = {
        "run.seed": tuple(range(1, RUNS + 1)),
        "run.seconds": (QUICK_SECONDS if quick else SECONDS,),
    }
    spec = Spec("bench", SCENARIO, grid, "bench/sweep.py")
    with tempfile.TemporaryDirectory() as folder:
        apart, together = Path(folder) / "apart", Path(folder) / "together"
        timeouts = max(timeouts_per_s() for _ in range(3))
        single = in_a_fresh_process(spec, apart)
        started_at = time.perf_counter()
        spark = started()
        start_up_s = time.perf_counter() - started_at
        swept = on_spark(spark, spec, together)
        assert digests(apart) == digests(together), "the two have not done the same work"
    ratio = swept.seconds / single.seconds
    notes = [
        f"Spark's start-up, left out: {start_up_s:.1f} s",
        f"processor seconds: {swept.cpu_s:.1f}, one after another {single.cpu_s:.1f}",
        f"in bare SimPy timeouts: {swept.cpu_s * timeouts / 1e6:.1f} million, one after another "
        f"{single.cpu_s * timeouts / 1e6:.1f} million",
        f"load of the machine, over the last minute: {os.getloadavg()[0]:.1f}",
    ]
    more = {"start_up_s": start_up_s, "cpu_s": swept.cpu_s, "baseline_cpu_s": single.cpu_s}
    more["timeouts_per_s"] = timeouts
    name = f"a sweep of {RUNS} runs on {CORES} cores"
    met = ratio <= TARGET_RATIO
    return [
        line(
            name, swept.seconds, "s", single.seconds, ratio, TARGET_RATIO, met, notes=notes, **more
        )
    ]


def in_a_fresh_process(spec: Spec, out: Path) -> Cost:
    """All points one after another, where no Spark has been."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(one_after_another, spec, out).result()


def one_after_another(spec: Spec, out: Path) -> Cost:
    points = points_of(spec)
    started_at, cpu_at = time.perf_counter(), time.process_time()
    for point in points:
        run_task(task_of(spec, out, point, FilesToShip()))
    return Cost(time.perf_counter() - started_at, time.process_time() - cpu_at)


def started() -> SparkSession:
    """A session whose Python workers have done something already."""
    spark = spark_session(f"local[{CORES}]", "bench")
    spark.range(0, CORES, 1, CORES).mapInArrow(acquainted, "id long").collect()
    return spark


def acquainted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import tidings.pipeline.sweep.points  # noqa: F401

    time.sleep(0.5)  # long enough for the other worker to get its share
    yield from batches


def on_spark(spark: SparkSession, spec: Spec, out: Path) -> Cost:
    points = points_of(spec)
    started_at, cpu_at = time.perf_counter(), family_cpu_s()
    report = sweep(spec, out, lambda: spark, lambda done, points: None, points)
    assert report.ran == RUNS, report.failures
    return Cost(time.perf_counter() - started_at, family_cpu_s() - cpu_at)


def digests(out: Path) -> dict[str, str]:
    return {row["point"]: row["digest"] for row in finished_points(out).to_pylist()}


if __name__ == "__main__":
    run("sweep", __doc__, measured)
