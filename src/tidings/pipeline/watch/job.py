"""Are contracts kept right now? A stream over the trace files of a running overlay.

    files → admissions (checked, by time) → join and windows on Spark → judged → windows/, messages

What is remembered
------------------
The folder of the checkpoint holds all that a watch remembers: how time is divided (`watch.json`),
what was admitted (`rounds`), Spark's own notes and state (`spark`), and the finished windows, one
file per batch of Spark (`windows`). A batch that runs again after a crash has the same number and
the same rows, and finds its file there: so every window is in exactly one file, once.

Which watermark
---------------
Spark's watermark follows the stream that is ahead, not the one behind: when nothing is delivered
any more, windows must go on, as that is what they are for. Admissions keep the two together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from tidings.core.errors import ConfigError, TidingsError, first_line
from tidings.files.folders import held_alone, replaced
from tidings.pipeline.transforms.windows import DURATIONS, Timing, Window, gathered, judged
from tidings.pipeline.watch.admission import NO_RUN, Admissions
from tidings.pipeline.watch.waiting_files import ROW_SCHEMA
from tidings.pipeline.watch.wishes import LatestWishes

BATCH_ROWS = 400_000  # admitted at once, when there is a backlog
LOOK_EVERY_S = 1.0
WISH_TYPE = "run string, subscription string, deadline_s double"
SETTINGS = {
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    # The next admission completes windows anyway, and a batch without rows costs as much as others.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
LOCK = ".watching"
ADMITTED_FOLDER = "rounds"  # below the checkpoint

Found = Callable[[list[Window]], None]


class Status(Struct):
    """How far a watch has come, since it was started."""

    rows: int = 0  # trace rows of published and delivered
    late_rows: int = 0  # pairs of a message and a subscription that came after the watermark
    refused_files: int = 0
    windows: int = 0
    batches: int = 0
    busy_s: float = 0.0  # Spark worked


class Watch:
    """One stream over one folder of traces. `found` hears of windows when they are written down."""

    def __init__(
        self,
        spark: SparkSession,
        traces: Path,
        checkpoint: Path,
        timing: Timing,
        found: Found,
        warn: Callable[[str], None],
    ) -> None:
        self.status = Status()
        self._timing, self._found = timing, found
        self._windows = checkpoint / "windows"
        checkpoint.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            held.enter_context(held_alone(checkpoint / LOCK, _busy(checkpoint)))
            _agree(checkpoint / "watch.json", timing)
            self._wishes = LatestWishes(traces, warn)
            self._admissions = Admissions(traces, checkpoint / ADMITTED_FOLDER, self._wishes, warn)
            self._query, self._counted = self._started(spark.newSession(), checkpoint), -1
            self._held = held.pop_all()
        self._heard_at, self._is_silent = time.monotonic(), False

    def step(self, most_rows: int = BATCH_ROWS) -> bool:
        """Admits what is next and waits until it is counted; false if there is nothing new."""
        found = self._admissions.admit(most_rows, self._timing.watermark_s)
        if found:
            self._heard_at, self._is_silent = time.monotonic(), False
            self._process()
        return found

    def rest(self, seconds: float = LOOK_EVERY_S) -> None:
        """Waits for new files. After a long silence, the windows before it are complete."""
        time.sleep(seconds)
        self._check()
        silence_s = time.monotonic() - self._heard_at
        if silence_s > self._timing.closes_after_s and not self._is_silent:
            self._is_silent = True
            self._let_pass(silence_s)

    def finish(self) -> None:
        """Nothing more will come: all windows are complete."""
        self._let_pass(self._timing.closes_after_s + self._timing.window_s)

    def stop(self) -> None:
        self._query.stop()
        self._held.close()

    def _let_pass(self, seconds: float) -> None:
        if self._admissions.last_at >= 0:
            for _ in range(2):  # the second meets the watermark that the first has set
                self._admissions.tell_time(self._admissions.last_at + seconds)
                self._process()

    def _process(self) -> None:
        """Waits until everything that was admitted has been counted."""
        with suppress(StreamingQueryException):  # `_check` says the same in fewer words
            self._query.processAllAvailable()
        self._check()
        status = self.status
        status.rows = self._admissions.rows
        status.refused_files = self._admissions.refused + self._wishes.refused
        for progress in self._query.recentProgress:
            if progress["batchId"] > self._counted and progress["stateOperators"]:
                self._counted = progress["batchId"]
                status.batches += 1
                status.busy_s += progress["durationMs"].get("triggerExecution", 0) / 1000
                status.late_rows += _late_rows(progress)

    def _check(self) -> None:
        if (problem := self._query.exception()) is not None:
            words = first_line(problem)
            raise TidingsError(f"the stream over the traces has failed: {words}")

    def _started(self, spark: SparkSession, checkpoint: Path) -> StreamingQuery:
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        rows = _stream(spark, checkpoint / ADMITTED_FOLDER / "rows")
        return (
            gathered(rows, self._timing)
            .writeStream.outputMode("append")
            .option("checkpointLocation", _address(checkpoint / "spark"))
            .foreachBatch(self._take)
            .start()
        )

    def _take(self, groups: DataFrame, batch: int) -> None:
        """Called by Spark with the groups of windows that are complete."""
        wishes = groups.sparkSession.createDataFrame(self._wishes.deadlines(), WISH_TYPE)
        rows = judged(groups.where(F.col("run") != NO_RUN), wishes, self._timing).collect()
        found = sorted(
            (Window(**row.asDict()) for row in rows), key=lambda w: (w.from_s, w.run, w.id)
        )
        found = kept(self._windows / f"{batch:09}.jsonl", found)
        if found:
            self.status.windows += len(found)
            self._found(found)


def kept(file: Path, windows: list[Window]) -> list[Window]:
    """The windows of a batch, as they were written down the first time."""
    if file.exists():
        return _read(file)
    if windows:
        lines = b"".join(msgspec.json.encode(window) + b"\n" for window in windows)
        replaced(file, lambda draft: draft.write_bytes(lines))
    return windows


def finished_windows(checkpoint: Path) -> list[Window]:
    """All that a watch has written down, in the order of its batches."""
    files = sorted((checkpoint / "windows").glob("*.jsonl"))
    return [window for file in files if file.name[0] != "." for window in _read(file)]


def _read(file: Path) -> list[Window]:
    return [_window(line) for line in file.read_bytes().splitlines()]


def _window(line: bytes) -> Window:
    fields = msgspec.json.decode(line)
    if fields["deadline_s"] is None:
        fields["deadline_s"] = float("inf")
    return msgspec.convert(fields, Window)


def _late_rows(progress: StreamingQueryProgress) -> int:
    return sum(each["numRowsDroppedByWatermark"] for each in progress["stateOperators"])


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(from_arrow_schema(ROW_SCHEMA)).option("cleanSource", "delete")
    return reader.parquet(_address(folder))


def _address(path: Path) -> str:
    return path.absolute().as_uri()


def _busy(checkpoint: Path) -> str:
    advice = "stop that one, or give this one a --checkpoint of its own"
    return f"another watch is using {checkpoint}: {advice}."


def _agree(file: Path, timing: Timing) -> None:
    """A checkpoint that was made with one division of time cannot go on with another."""
    if file.exists():
        before = msgspec.json.decode(file.read_bytes(), type=Timing)
        if before != timing:
            accepted = f"{_options(before)}, with which this checkpoint was made; or another folder"
            raise ConfigError(str(file.parent), "timing", _options(timing), accepted)
    else:
        replaced(file, lambda draft: draft.write_bytes(msgspec.json.encode(timing)))


def _options(timing: Timing) -> str:
    options = [f"--{name.replace('_', '-')} {getattr(timing, name):g}" for name in DURATIONS]
    return " ".join([*options, *(["--age"] if timing.by == "age" else [])])
