"""How does Spark talk to an overlay? As a data source called `tidings`.

    register(spark)
    spark.readStream.format("tidings").option("url", "tidings://127.0.0.1:7100/orders").load()
    spark.read.format("tidings").options(traces="traces", table="published").load()
    frame.writeStream.format("tidings").option("url", "mqtt://127.0.0.1:1883")...

It reads a log that a broker keeps (`log_reader`), or the stored rows of a trace, and publishes rows
(`sink`). Spark makes the source afresh in every process that plans, reads or writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tidings.core.errors import ConfigError
from tidings.pipeline.schemas import TRACE_TYPES
from tidings.pipeline.source.log_options import (
    SOURCE,
    PublishOptions,
    TraceOptions,
    log_options,
    options_as,
    trace_options,
)
from tidings.pipeline.source.log_reader import LogReader, LogStreamReader
from tidings.pipeline.source.log_rows import MESSAGE_TYPE
from tidings.pipeline.source.sink import BatchPublisher, StreamPublisher
from tidings.traces.intake import take_in
from tidings.traces.stored import stored_rows

TRACE_BATCH_ROWS = 10_000
TASK_BYTES = 64_000_000  # of files, compressed; a live broker leaves 86,400 small ones a day


def register(spark: SparkSession) -> None:
    """Makes `format("tidings")` known to this session."""
    spark.dataSource.register(TidingsDataSource)


class TidingsDataSource(DataSource):
    """Logs and traces to read, brokers to publish at."""

    @classmethod
    def name(cls) -> str:
        return "tidings"

    def schema(self) -> StructType:
        if "traces" in self.options:
            return TRACE_TYPES[trace_options(self.options).table]
        log_options(self.options)
        return MESSAGE_TYPE

    def reader(self, schema: StructType) -> DataSourceReader:
        if "traces" in self.options:
            return TraceReader(trace_options(self.options))
        return LogReader(log_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if "traces" in self.options:
            accepted = "no such option: a stream reads a log, by its url"
            raise ConfigError(SOURCE, "traces", self.options["traces"], accepted)
        return LogStreamReader(log_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchPublisher(schema, options_as(PublishOptions, self.options), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return StreamPublisher(schema, options_as(PublishOptions, self.options), overwrite)


class TraceReader(DataSourceReader):
    """`spark.read.format("tidings")` with `traces` and `table`: many small files in one task."""

    def __init__(self, options: TraceOptions) -> None:
        self._folder, self._table = Path(options.traces).absolute(), options.table

    def partitions(self) -> list[InputPartition]:
        intake = take_in(self._folder)
        for bad in intake.quarantined:
            if bad.table == self._table:
                _warn(f"{bad.file} is not read: {bad.reason}")
        return [InputPartition(files) for files in _portions(intake.files[self._table])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(TRACE_TYPES[self._table], timezone="UTC")
        for file in partition.value:
            with stored_rows(file) as stored:
                for rows in stored.batches(schema, TRACE_BATCH_ROWS):
                    yield from rows.to_batches()


def _portions(files: Iterable[Path]) -> list[list[Path]]:
    """What one task reads each; a table that nothing was written to has one, without files."""
    portions, size_bytes = [list[Path]()], 0
    for file in files:
        size_bytes += file.stat().st_size
        if size_bytes > TASK_BYTES and portions[-1]:
            portions.append([])
            size_bytes = file.stat().st_size
        portions[-1].append(file)
    return portions


def _warn(problem: str) -> None:
    print(f"tidings: {problem}", file=sys.stderr, flush=True)
