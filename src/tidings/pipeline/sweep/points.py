"""How does one point run, so that its result is whole or not there at all?

This runs in a Spark executor. Rows stream from the simulation into one hidden draft per table. At
the end the drafts get their final names, and last of all the point's row appears in `points`.

Tries
-----
Names follow from the point alone. A task that is tried again, even while the first try still runs
somewhere, replaces files by equal ones and never adds rows. Once one try has finished, no other
begins, and none says that the point has failed.

Failures
--------
An exception is caught here, and becomes the point's row. If the process itself dies each time (out
of memory), Spark would give up the whole sweep after the last try. So the last of several tries
does not run the point, and only writes that it failed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark import TaskContext

from tidings import CODE
from tidings.core.errors import TidingsError
from tidings.pipeline.session import TASK_TRIES
from tidings.pipeline.shipping import unpacked
from tidings.scenarios.set_up import set_up
from tidings.sim.result import Result
from tidings.sim.scenario import Scenario
from tidings.sim.world import simulate
from tidings.traces.drafts import Drafts
from tidings.traces.files import read_files
from tidings.traces.points import FAILED, FINISHED, POINT_SCHEMA, POINTS

STALE_DRAFT_S = 86_400.0  # a try that has added to no table for so long was killed


class Task(Struct, frozen=True):
    """A point on its way to an executor; all that it needs is in here, or shipped beside it."""

    study: str
    point: str
    parameters: str  # JSON
    scenario: bytes  # MessagePack
    out: str
    tries: int = TASK_TRIES  # Spark makes


TASK_SCHEMA = pa.schema(
    {"study": pa.string(), "point": pa.string(), "parameters": pa.string()}
    | {"scenario": pa.binary(), "out": pa.string(), "tries": pa.int64()}
)

# What the driver hears of a task: which code has run it, too. What it has left is on the disk, and
# does not depend on that.
DONE_SCHEMA = pa.schema({"point": pa.string(), "code": pa.string()})


def run_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: tasks in, one row of `DONE_SCHEMA` out for each."""
    context = TaskContext.get()
    earlier_tries = context.attemptNumber() if context else 0
    for batch in batches:
        for row in batch.to_pylist():
            done = run_task(Task(**row), earlier_tries)
            told = {"point": done["point"], "code": CODE}
            yield pa.RecordBatch.from_pylist([told], schema=DONE_SCHEMA)


def run_task(task: Task, earlier_tries: int = 0) -> dict[str, Any]:
    """Run one point and leave its files; returns its row. A point that fails leaves only that."""
    scenario = unpacked(msgspec.msgpack.decode(task.scenario, type=Scenario))
    place = partition(task.study, scenario.broker.strategy)
    file = Path(task.out) / POINTS / place / f"{task.point}.parquet"
    if finished := _finished(file):  # by a try that nobody heard of any more
        return finished
    drafts = Drafts(Path(task.out), task.point, place)
    row = _tried(task, scenario, drafts, earlier_tries)
    drafts.sink(POINTS, pa.RecordBatch.from_pylist([row], schema=POINT_SCHEMA))
    if row["status"] == FINISHED:
        drafts.keep()
    elif not drafts.keep_new():  # another try has ended meanwhile, and may have finished
        return _finished(file) or row
    return row


def partition(study: str, strategy: str) -> str:
    """Where below a table the rows of a study and strategy lie."""
    return f"study={study}/strategy={strategy}"


def remove_stale_drafts(out: Path) -> None:
    """Tidy up after a sweep that was killed; another one may be running in the same folder."""
    oldest, tries = time.time() - STALE_DRAFT_S, dict[str, list[Path]]()
    for draft in out.glob("*/study=*/strategy=*/.*.parquet"):
        tries.setdefault(draft.name, []).append(draft)  # one name in all tables
    for drafts in tries.values():
        with suppress(FileNotFoundError):  # it has just become a file
            if all(draft.stat().st_mtime < oldest for draft in drafts):
                for draft in drafts:
                    draft.unlink()


def _tried(task: Task, scenario: Scenario, drafts: Drafts, earlier_tries: int) -> dict[str, Any]:
    """The point's row, whatever happens; its other files are there if it finished."""
    started_at = time.perf_counter()
    try:
        _check_tries(earlier_tries, task.tries)
        result = simulate(set_up(scenario), task.point, drafts.sink)
        drafts.keep()
        return _row(task, scenario, time.perf_counter() - started_at, result)
    except Exception as error:  # whatever it is, the other points go on
        return _row(task, scenario, time.perf_counter() - started_at, None, _error_text(error))
    finally:
        drafts.discard()


def _check_tries(earlier: int, tries: int) -> None:
    if 0 < earlier >= tries - 1:
        raise TidingsError(
            f"{earlier} tries ended without a word, as when memory runs out or machines are lost"
        )


def _finished(file: Path) -> dict[str, Any] | None:
    """The row of a point that is done, if it is."""
    if not file.exists():
        return None
    (row,) = read_files([file], POINT_SCHEMA).to_pylist()
    return row if row["status"] == FINISHED else None


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


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
