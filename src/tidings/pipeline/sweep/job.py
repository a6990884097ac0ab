"""Which points are missing, and how do they get done? One simulation per task, on all executors.

Only points without a `finished` row in `points` run. The job runs in a thread of its own. Meanwhile
the caller hears how many points are done, which is read off the disk: what a person sees is what
would be kept if the machine stopped now. On a cluster, driver and executors must see the same
folder.

Every task goes out from the driver with its point in it. Nothing is shuffled, so if an executor is
lost, only the points that it was running are lost with it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.core.errors import ConfigError, TidingsError
from tidings.files.folders import writable_folder
from tidings.pipeline.session import StartSpark, task_tries
from tidings.pipeline.shipping import FilesToShip
from tidings.pipeline.sweep.grid import Point, Progress, Spec, points_of
from tidings.pipeline.sweep.points import (
    DONE_SCHEMA,
    TASK_SCHEMA,
    Task,
    partition,
    remove_stale_drafts,
    run_tasks,
)
from tidings.traces.files import parquet_files, read_files
from tidings.traces.plain_parquet.empty_tables import write_empty_tables
from tidings.traces.points import FINISHED, POINT_SCHEMA, POINTS

POLL_S = 0.2
CANCEL_WITHIN_S = 15.0
SEEN_WITHIN_S = 60.0  # a network file system may show this late what another machine has written

# Into how many partitions Spark cuts rows that come from the driver.
PARALLELISM = "spark.sql.leafNodeDefaultParallelism"


class SweepReport(Struct, frozen=True):
    """What a sweep has done."""

    study: str
    out: str
    points: int
    kept: int  # were there already
    ran: int  # finished now
    failures: list[dict[str, Any]]  # rows of `points`
    interrupted: bool
    seconds: float
    code: dict[str, int]  # how many points were run by which; not known of what was interrupted


def sweep(
    spec: Spec,
    out: Path,
    start_spark: StartSpark,
    progress: Progress,
    points: list[Point] | None = None,
) -> SweepReport:
    """Run what is missing. Ctrl-C ends it early; what has finished stays.

    `points` are those of the spec, if they are known already: a large grid takes seconds.
    """
    started_at = time.perf_counter()
    points = points_of(spec) if points is None else points
    done = _rows(spec, out)
    missing = [p for p in points if done.get(p.name, {}).get("status") != FINISHED]
    if missing:
        write_empty_tables(writable_folder(out, "--out"))
    for point in missing:
        _file(spec, out, point).unlink(missing_ok=True)  # the row of a failure
    remove_stale_drafts(out)
    ran_by: Counter[str] | None = Counter()
    if missing:
        ran_by = _run(spec, out, points, missing, start_spark, progress)
    done = _rows(spec, out)
    rows = [row for p in missing if (row := done.get(p.name))]
    failures = [row for row in rows if row["status"] != FINISHED]
    return SweepReport(
        spec.name,
        str(out),
        len(points),
        len(points) - len(missing),
        len(rows) - len(failures),
        failures,
        ran_by is None,
        time.perf_counter() - started_at,
        dict(ran_by or {}),
    )


def _run(
    spec: Spec,
    out: Path,
    points: list[Point],
    missing: list[Point],
    start_spark: StartSpark,
    progress: Progress,
) -> Counter[str] | None:
    """By which code how many ran, or none if it was interrupted."""
    files, kept = [_file(spec, out, point) for point in missing], len(points) - len(missing)

    def tell() -> int:
        done = sum(file.exists() for file in files)
        progress(kept + done, len(points))
        return done

    tell()
    files_to_ship, job = FilesToShip(), None
    tasks = [task_of(spec, out, point, files_to_ship) for point in missing]
    try:
        job = _Job(start_spark(), tasks, files_to_ship)
        while not job.ended(POLL_S):
            tell()
        _wait_until(lambda: tell() == len(files), out)
    except KeyboardInterrupt:
        if job is not None:
            job.cancel()
        return None
    return job.ran_by


def _wait_until(all_seen: Callable[[], bool], out: Path) -> None:
    """Every task has written its file; wait until this machine sees them all."""
    until = time.monotonic() + SEEN_WITHIN_S
    while not all_seen():
        if time.monotonic() > until:
            accepted = "a folder that this machine shares with all machines of the cluster"
            problem = f"{out} (points have run, but their files are not here)"
            raise ConfigError("--out", "folder", problem, accepted)
        time.sleep(POLL_S)


class _Job:
    """The Spark job, in a thread of its own."""

    def __init__(self, spark: SparkSession, tasks: list[Task], files_to_ship: FilesToShip) -> None:
        self._spark, self._luggage = spark, files_to_ship
        self._error: Exception | None = None
        self.ran_by = Counter[str]()  # once it has ended
        self._thread = Thread(target=self._work, args=(tasks,), name="sweep", daemon=True)
        self._thread.start()

    def ended(self, within_s: float) -> bool:
        self._thread.join(within_s)
        if self._error is not None:
            raise TidingsError(
                f"Spark could not run the sweep to its end: {_problem(self._error)}. The points "
                f"that finished are kept; the same command runs the rest."
            ) from self._error
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End it for good: a cancelled task would go on for 2 s and might still finish a point."""
        with suppress(Exception):  # the same signal may have ended the JVM already
            # Tasks that report to a scheduler that is gone are no news to a person who stopped it.
            self._spark.sparkContext.setLogLevel("OFF")
            self._spark.sparkContext.cancelAllJobs()
            self._spark.stop()
        self._thread.join(CANCEL_WITHIN_S)

    def _work(self, tasks: list[Task]) -> None:
        try:
            self._luggage.hand_over(self._spark.sparkContext)
            with _partitions(self._spark, len(tasks)):
                frame = self._spark.createDataFrame(_one_batch_each(tasks, task_tries(self._spark)))
                done = frame.mapInArrow(run_tasks, from_arrow_schema(DONE_SCHEMA)).collect()
                self.ran_by.update(row.code for row in done)
        except Exception as error:
            self._error = error


def _problem(error: Exception) -> str:
    """In one line: what Python said on an executor, if it said anything, else what Spark says."""
    text = str(error).strip()
    raised = re.search(r"^(?:\w+\.)*\w+(?:Error|Exception): .+", text, re.MULTILINE)
    return (raised[0] if raised else text.partition("\n")[0]).rstrip(".")


@contextmanager
def _partitions(spark: SparkSession, count: int) -> Iterator[None]:
    """Rows that come from the driver are cut into so many partitions."""
    spark.conf.set(PARALLELISM, str(count))
    try:
        yield
    finally:
        spark.conf.unset(PARALLELISM)


def _one_batch_each(tasks: list[Task], tries: int) -> pa.Table:
    """A table with a batch for each task: Spark cuts very many rows by batches."""
    rows = [msgspec.structs.asdict(task) | {"tries": tries} for task in tasks]
    return pa.Table.from_batches([pa.RecordBatch.from_pylist([row], TASK_SCHEMA) for row in rows])


def task_of(spec: Spec, out: Path, point: Point, files_to_ship: FilesToShip) -> Task:
    """The point, packed for an executor."""
    parameters = msgspec.json.encode(point.parameters).decode()
    scenario = msgspec.msgpack.encode(files_to_ship.packed(point.scenario))
    return Task(spec.name, point.name, parameters, scenario, str(out.absolute()))


def _file(spec: Spec, out: Path, point: Point) -> Path:
    place = partition(spec.name, point.scenario.broker.strategy)
    return out / POINTS / place / f"{point.name}.parquet"


def _rows(spec: Spec, out: Path) -> dict[str, dict[str, Any]]:
    """What is known of each point of this study."""
    files = parquet_files(out / POINTS / f"study={spec.name}")
    return {row["point"]: row for row in read_files(files, POINT_SCHEMA).to_pylist()}
