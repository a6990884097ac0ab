"""How does one point run, so that its result is whole or not there at all?

This runs in a Spark executor. Rows stream from the simulation into one hidden draft per table; at
the end the drafts are renamed to their final names, and last of all the point's row appears in
`points`. Names follow from the point alone: a task that is tried again, even while the first try
still runs somewhere, replaces files by equal ones and never adds rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from tidings.pipeline.drafts import Drafts
from tidings.pipeline.files import FAILED, FINISHED, POINT_SCHEMA, POINTS
from tidings.sim.scenario import Scenario
from tidings.sim.world import Result, simulate

STALE_DRAFT_S = 3600.0  # a draft that nobody has touched for so long was left by a kill


class Task(Struct, frozen=True):
    """A point on its way to an executor; everything that it needs is in here."""

    study: str
    point: str
    parameters: str  # JSON
    scenario: bytes  # MessagePack
    out: str


TASK_SCHEMA = pa.schema(
    {"number": pa.int32(), "study": pa.string(), "point": pa.string()}
    | {"parameters": pa.string(), "scenario": pa.binary(), "out": pa.string()}
)


def run_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: tasks in, one row of `points` out for each."""
    for batch in batches:
        for row in batch.drop_columns(["number"]).to_pylist():
            done = run_task(Task(**row))
            yield pa.RecordBatch.from_pylist([done], schema=POINT_SCHEMA)


def run_task(task: Task) -> dict[str, Any]:
    """Run one point and leave its files; returns its row. A point that fails leaves only that."""
    scenario = msgspec.msgpack.decode(task.scenario, type=Scenario)
    started_at = time.perf_counter()
    place = partition(task.study, scenario.broker.strategy)
    drafts = Drafts(Path(task.out), task.point, place)
    try:
        result = simulate(scenario, task.point, drafts.sink)
        drafts.keep()
        row = _row(task, scenario, time.perf_counter() - started_at, result)
    except Exception as error:  # whatever it is, the other points go on
        row = _row(task, scenario, time.perf_counter() - started_at, None, _said(error))
    finally:
        drafts.discard()
    drafts.sink(POINTS, pa.RecordBatch.from_pylist([row], schema=POINT_SCHEMA))
    drafts.keep()
    return row


def partition(study: str, strategy: str) -> str:
    """Where below a table the rows of a study and strategy lie."""
    return f"study={study}/strategy={strategy}"


def remove_stale_drafts(out: Path) -> None:
    """Tidy up after a sweep that was killed."""
    oldest = time.time() - STALE_DRAFT_S
    for draft in out.glob("*/study=*/strategy=*/.*.parquet"):
        if draft.stat().st_mtime < oldest:
            draft.unlink(missing_ok=True)


def _row(
    task: Task, scenario: Scenario, seconds: float, result: Result | None, error: str = ""
) -> dict[str, Any]:
    return {
        "study": task.study,
        "point": task.point,
        "scenario": scenario.source,
        "strategy": scenario.broker.strategy,
        "seed": scenario.run.seed,
        "parameters": task.parameters,
        "status": FINISHED if result else FAILED,
        "error": error,
        "digest": result.digest if result else "",
        "seconds": seconds,
        "publications": result.publications if result else 0,
        "deliveries": result.deliveries if result else 0,
        "hops": result.hops if result else 0,
    }


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
