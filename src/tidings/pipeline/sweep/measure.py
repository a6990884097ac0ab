"""What does each point of a study come to? Its metrics, made once and kept.

A study of the paper's size has hundreds of runs with half a million outcomes each. So points are
measured some at a time, as many as fit Spark's default memory: outcomes of a whole study never
exist at once, and a study that is interrupted goes on with the points that are not measured yet.
What is kept is a small file for each point, with the digest of the trace rows that it was made of:
a point that has run again and left other rows is measured again. The trace rows stay (3 to 4 MB for
two simulated hours of DCRD's setup), so that every other question can still be asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from pyspark.sql import SparkSession

from tidings.core.errors import TidingsError, first_line
from tidings.core.trace import SCHEMA_VERSION
from tidings.files.folders import replaced
from tidings.pipeline.analyse.intervals import interval_factor
from tidings.pipeline.analyse.job import persisted
from tidings.pipeline.analyse.question import Material, Question, answers, needed
from tidings.pipeline.analyse.spark_settings import NO_BROADCASTS, temporary_settings
from tidings.pipeline.session import StartSpark
from tidings.pipeline.sweep.grid import Point, Progress
from tidings.pipeline.trace_frames import read_traces
from tidings.sim.scenario import Scenario
from tidings.traces.files import read_files
from tidings.traces.points import finished_points

MEASURED = "measured"
MEAN = "mean"  # the place of a mean over subscriptions

DELIVERIES_AT_ONCE = 2_500_000  # 1 GB, Spark's default for local mode, suffices for them

MEASURED_SCHEMA = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("strategy", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("subscription", pa.string()),  # null: of all that were asked about
        pa.field("at", pa.float64()),  # where in a series; null: the metric is a number
        pa.field("value", pa.float64()),
    ]
)


def measure(
    start_spark: StartSpark,
    folder: Path,
    study: str,
    points: Sequence[Point],
    question: Question,
    progress: Progress,
) -> pd.DataFrame:
    """The answers of those of these points that have finished: `MEASURED_SCHEMA`."""
    place, maker = folder / MEASURED / f"study={study}", _maker(question)
    known = {point.name: point.scenario for point in points}
    finished = [
        _Finished(row["point"], row["digest"] + maker, row["deliveries"], place)
        for row in finished_points(folder).to_pylist()
        if row["study"] == study and row["point"] in known
    ]
    missing = [point for point in finished if not point.is_measured()]
    done = len(finished) - len(missing)
    for some in _portions(missing):
        progress(done, len(finished))
        scenarios = {point.name: known[point.name] for point in some}
        rows = _measured(start_spark(), folder, scenarios, question)
        for point in some:
            point.keep(rows[rows["run"] == point.name])
        done += len(some)
    progress(done, len(finished))
    found: pd.DataFrame = read_files([p.file() for p in finished], MEASURED_SCHEMA).to_pandas()
    return found


def over_topologies(
    measured: pd.DataFrame, lines: pd.DataFrame, labels: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Means over runs and the half-widths of their 95 % confidence intervals (Student's t).

    `lines` says of each run where it belongs in a figure: `setting` and `x`, and `strategy` where
    another parameter than the routing strategy makes the lines. A series has an x of its own. With
    `labels` of subscriptions, x is such a label, or `MEAN`.
    """
    rows = placed(measured, lines, labels)
    keys = ["setting", "strategy", "metric", "x"]
    table = rows.groupby(keys, as_index=False)["value"].agg(["mean", "std", "count"])
    table["ci"] = table["std"] * interval_factor(table["count"])
    return table.rename(columns={"count": "runs"})[[*keys, "mean", "ci", "runs"]]


def placed(
    measured: pd.DataFrame, lines: pd.DataFrame, labels: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Every number of every run, with its place in the figure."""
    known = measured.drop(columns="strategy") if "strategy" in lines else measured
    rows = known.dropna(subset="value").merge(lines, on="run")
    rows["x"] = rows["at"].fillna(rows["x"])
    if labels is not None:
        rows["x"] = rows["subscription"].map(labels).fillna(MEAN)
    return rows


class _Finished(Struct, frozen=True):
    """A point that can be measured, and the file that says what it came to."""

    name: str
    made_of: str  # another text than the file's means that the file is made again
    deliveries: int
    place: Path

    def file(self) -> Path:
        return self.place / f"{self.name}.parquet"

    def is_measured(self) -> bool:
        if not self.file().exists():
            return False
        metadata = pq.read_schema(self.file()).metadata or {}
        return bool(metadata.get(b"made of") == self.made_of.encode())

    def keep(self, rows: pd.DataFrame) -> None:
        metadata = {"tidings": str(SCHEMA_VERSION), "made of": self.made_of}
        table = pa.Table.from_pandas(rows, MEASURED_SCHEMA, preserve_index=False)
        named = table.replace_schema_metadata(metadata)
        replaced(self.file(), lambda draft: pq.write_table(named, draft))


def _maker(question: Question) -> str:
    """What a file is made by, besides trace rows."""
    return f" version {SCHEMA_VERSION}: {msgspec.json.encode(question).decode()}"


def _portions(points: list[_Finished]) -> Iterator[list[_Finished]]:
    """As many points as fit, in each portion; at least one."""
    portion: list[_Finished] = []
    for point in points:
        if portion and sum(p.deliveries for p in [*portion, point]) > DELIVERIES_AT_ONCE:
            yield portion
            portion = []
        portion.append(point)
    if portion:
        yield portion


def _measured(
    spark: SparkSession, folder: Path, scenarios: Mapping[str, Scenario], question: Question
) -> pd.DataFrame:
    """The answers of some points, whose outcomes are joined once."""
    traces = read_traces(spark, folder, scenarios)
    seconds = {name: scenario.run.seconds for name, scenario in scenarios.items()}
    apart = frozenset(n for n, scenario in scenarios.items() if scenario.topology.get("publishers"))
    with (
        _one_clear_error(),
        # as in `spark_settings`: Spark would run out of memory
        temporary_settings(spark, NO_BROADCASTS),
        persisted(needed(traces, question)) as rows,
    ):
        return answers(Material(spark, traces, rows, seconds, apart), question)


@contextmanager
def _one_clear_error() -> Iterator[None]:
    """What Spark cannot do is said in one line."""
    try:
        yield
    except Exception as error:  # of Spark's Python side, of its Java side, or of what joins them
        problem = first_line(error)
        raise TidingsError(
            f"Spark could not measure the points: {problem}. What was measured before is kept; the "
            f"same command goes on from there."
        ) from error
