"""How does a log become a stream, or a frame? In ranges of offsets, each read by one task.

A range names its messages for good: a task that runs again, and a query that restarts from its
checkpoint, read exactly the same rows, as long as the log keeps them. A checkpoint holds the log's
id beside the offset, so that a log that was thrown away and made again is not taken for the old
one. What cannot be read any more ends the query (`on_loss = fail`) or is passed over (`skip`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from tidings.pipeline.source.log_client import LogClient, LogLoss, LogState
from tidings.pipeline.source.log_options import LogOptions
from tidings.pipeline.source.log_rows import RowMaker

ROWS_PER_REQUEST = 10_000

LogOffset = dict[str, Any]  # what a checkpoint holds: the log's id and an offset


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """What one task reads: the offsets from `start` to before `end` of one log."""

    log: str  # its id
    start: int
    end: int


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream.format("tidings")`"""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._target: int | None = None  # with the trigger availableNow: nothing beyond it

    def initialOffset(self) -> LogOffset:
        state = _state(self._options)
        return _place(state, _chosen(self._options.start, "from", state, self._options))

    def latestOffset(self, start: LogOffset, limit: ReadLimit) -> LogOffset:
        state = _state(self._options)
        offset = _resumed(start, state, self._options)
        end = state.next if self._target is None else max(offset, min(state.next, self._target))
        if isinstance(limit, ReadMaxRows):
            end = min(end, offset + limit.max_rows)
        if end == offset == start["offset"] and state.stopped:
            _lose(f"{self._options.url} gets no more messages: {state.stopped}", self._options)
        return _place(state, end)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_rows_per_batch)

    def reportLatestOffset(self) -> LogOffset:
        state = _state(self._options)
        return _place(state, state.next)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = _state(self._options).next

    def partitions(self, start: LogOffset, end: LogOffset) -> list[InputPartition]:
        first = start["offset"]
        if start["log"] != end["log"]:
            first = 0
        if self._options.on_loss == "skip":
            first = max(first, _state(self._options).oldest)
        return _ranges(end["log"], first, end["offset"], self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, OffsetRange)
        return _rows(partition, self._options)


class LogReader(DataSourceReader):
    """`spark.read.format("tidings")` with a `url`"""

    def __init__(self, options: LogOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        options, state = self._options, _state(self._options)
        start = _chosen(options.start, "from", state, options)
        end = _chosen(options.end, "until", state, options)
        return _ranges(state.id, start, end, options) or [OffsetRange(state.id, end, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, OffsetRange)
        return _rows(partition, self._options)


def _state(options: LogOptions) -> LogState:
    with LogClient(options.url, options.patience_s) as client:
        return client.state()


def _place(state: LogState, offset: int) -> LogOffset:
    return {"log": state.id, "offset": offset}


def _chosen(text: str, option: str, state: LogState, options: LogOptions) -> int:
    """The offset that an option names; one that is not kept, or not there yet, is a loss."""
    known = {"oldest": state.oldest, "latest": state.next}
    if text in known:
        return known[text]
    offset = int(text)
    if not state.oldest <= offset <= state.next:
        kept = f"offsets {state.oldest} to {state.next}"
        _lose(f"option {option} is {offset}, but {options.url} has {kept}", options)
    return min(max(offset, state.oldest), state.next)


def _resumed(start: LogOffset, state: LogState, options: LogOptions) -> int:
    """Where a stream goes on: where it was, unless that is not there any more."""
    offset, url = int(start["offset"]), options.url
    if start["log"] != state.id:
        problem = f"{url} is not the log that this query has read: it was made anew meanwhile"
        _lose(f"{problem}, and begins with offset {state.oldest}", options)
        return state.oldest
    if offset > state.next:
        problem = f"{url} ends before offset {state.next}, but this query has read to {offset}"
        _lose(f"{problem}: a crash, or somebody, has taken the rest", options)
        return state.next
    if offset < state.oldest:
        problem = f"{url} keeps nothing before offset {state.oldest} any more, but this query"
        _lose(f"{problem} goes on from {offset}: {state.oldest - offset} messages", options)
        return state.oldest
    return offset


def _lose(problem: str, options: LogOptions) -> None:
    if options.on_loss == "fail":
        advice = "The option on_loss=skip goes on with what is there"
        raise LogLoss(f"{problem}. {advice}, a new checkpoint begins afresh.")


def _ranges(log: str, start: int, end: int, options: LogOptions) -> list[InputPartition]:
    step = options.rows_per_partition
    return [OffsetRange(log, at, min(at + step, end)) for at in range(start, end, step)]


def _rows(wanted: OffsetRange, options: LogOptions) -> Iterator[pa.RecordBatch]:
    rows, offset = RowMaker(options), wanted.start
    with LogClient(options.url, options.patience_s) as client:
        while offset < wanted.end:
            limit = min(wanted.end - offset, ROWS_PER_REQUEST)
            try:
                records = client.records(wanted.log, offset, limit)
            except LogLoss as loss:
                _lose(str(loss), options)
                offset = loss.resume_at or _after_loss(client.state(), wanted, offset)
                continue
            offset = records[-1].offset + 1
            if (batch := rows.batch(records)).num_rows:
                yield batch


def _after_loss(state: LogState, wanted: OffsetRange, offset: int) -> int:
    """Where a task goes on that may pass over what is lost: nowhere, if that is all."""
    same_and_later = state.id == wanted.log and offset < state.oldest < wanted.end
    return state.oldest if same_and_later else wanted.end
