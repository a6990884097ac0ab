"""Which messages of a log become rows, and what does a row say?

A reader's `topic` and `where` mean what they mean in a subscription. Its contract joins the
publisher's as a subscriber's would: the tighter deadline holds, prices multiply. A message is in
time if it was no older than that deadline when it reached the broker that keeps the log. The time
that Spark takes after that is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidings.core.message import Message, attributes
from tidings.core.predicate import parse
from tidings.core.topic import matches
from tidings.live.logs.records import LogRecord
from tidings.pipeline.source.log_options import LogOptions
from tidings.traces.outcomes import GRAIN_S

REMEMBERED_TOPICS = 10_000

MESSAGE_TYPE = StructType(
    [
        StructField("offset", LongType(), nullable=False),
        StructField("at", TimestampType(), nullable=False),  # when it was logged
        StructField("message", LongType(), nullable=False),  # id
        StructField("topic", StringType(), nullable=False),
        StructField("payload", BinaryType(), nullable=False),
        StructField("properties", MapType(StringType(), StringType(), False), nullable=False),
        StructField("deadline_s", DoubleType(), nullable=False),  # the tighter one; infinite: none
        StructField("price", DoubleType(), nullable=False),  # the publisher's times the reader's
        StructField("age_s", DoubleType(), nullable=False),  # when it was logged
        StructField("in_time", BooleanType(), nullable=False),
    ]
)


class RowMaker:
    """Turns records into rows, for one reader."""

    def __init__(self, options: LogOptions) -> None:
        self._topic, self._price = options.topic, options.price
        self._where = parse(options.where) if options.where else None
        self._deadline_s, self._drops = options.deadline_ms / 1000, options.late == "drop"
        self._wanted: dict[str, bool] = {}
        self._schema = to_arrow_schema(MESSAGE_TYPE, timezone="UTC")

    def batch(self, records: Iterable[LogRecord]) -> pa.RecordBatch:
        """The rows of those records that this reader wants."""
        wanted = [record for record in records if self._takes(record)]
        deadlines = [min(record.deadline_s, self._deadline_s) for record in wanted]
        columns = [
            [record.offset for record in wanted],
            [round(record.at * 1e6) for record in wanted],
            [record.message for record in wanted],
            [record.topic for record in wanted],
            [record.payload for record in wanted],
            [list(dict(record.properties).items()) for record in wanted],
            deadlines,
            [record.price * self._price for record in wanted],
            [record.age_s for record in wanted],
            [_in_time(record, limit) for record, limit in zip(wanted, deadlines, strict=True)],
        ]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _takes(self, record: LogRecord) -> bool:
        if self._topic and not self._takes_topic(record.topic):
            return False
        if self._drops and not _in_time(record, min(record.deadline_s, self._deadline_s)):
            return False
        if self._where is None:
            return True
        message = Message(
            record.message, record.topic, record.payload, properties=record.properties
        )
        return self._where.matches(attributes(message))

    def _takes_topic(self, topic: str) -> bool:
        known = self._wanted.get(topic)
        if known is None:
            known = matches(self._topic, topic)
            if len(self._wanted) < REMEMBERED_TOPICS:
                self._wanted[topic] = known
        return known


def _in_time(record: LogRecord, deadline_s: float) -> bool:
    return record.age_s <= deadline_s + GRAIN_S
