"""How do rows become messages? Column by column, published by the task that has them.

`topic` and `payload` are the message; `properties`, `deadline_ms`, `price` and `durable` are what
an MQTT 5 publisher may state in user properties, and null states nothing. A column that is not one
of these is refused: it would be lost in silence. Rows of one task are published in their order.

A task succeeds when the broker has taken all its rows. One that fails halfway has published some of
them already, and Spark runs it again: rows are published at least once, and no abort takes a
message back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    MapType,
    NumericType,
    StringType,
    StructType,
)

from tidings.core.errors import ConfigError, TopicError
from tidings.core.topic import check_topic
from tidings.mqtt.contracts import STATEMENTS, property_text
from tidings.mqtt.properties import UserProperties
from tidings.pipeline.source.log_options import SOURCE, PublishOptions
from tidings.pipeline.source.publisher import MqttPublisher, PublishError, broker_place

# column: (whether it has to be there, its types, how they are called)
COLUMNS: dict[str, tuple[bool, tuple[type[DataType], ...], str]] = {
    "topic": (True, (StringType,), "a string"),
    "payload": (True, (BinaryType, StringType), "binary, or a string, which is sent as UTF-8"),
    "properties": (False, (MapType,), "a map of strings to strings"),
    "deadline_ms": (False, (NumericType,), "a number"),
    "price": (False, (NumericType,), "a number"),
    "durable": (False, (BooleanType,), "a boolean"),
}
# column: the user property that it becomes, if it states something
STATED = {column: name for name in STATEMENTS if (column := name.replace("-", "_")) in COLUMNS}


def check_columns(schema: StructType) -> None:
    """Raises a `ConfigError` unless rows of this schema can be published."""
    found = {field.name: field.dataType for field in schema.fields}
    for name, (needed, types, called) in COLUMNS.items():
        if needed and name not in found:
            raise ConfigError(SOURCE, f"column {name}", None, called)
        if name in found and not isinstance(found[name], types):
            raise ConfigError(SOURCE, f"column {name}", found[name].simpleString(), called)
    kind = found.get("properties")
    if isinstance(kind, MapType):
        texts = isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
        if not texts:
            accepted = COLUMNS["properties"][2]
            raise ConfigError(SOURCE, "column properties", kind.simpleString(), accepted)
    for name in found:
        if name not in COLUMNS:
            accepted = f"only the columns {', '.join(COLUMNS)}; select them before you write"
            raise ConfigError(SOURCE, "column", name, accepted)


class _Publishes:
    """What batches and streams do alike."""

    def __init__(self, schema: StructType, options: PublishOptions, overwrite: bool) -> None:
        check_columns(schema)
        broker_place(options.url)
        if overwrite:
            accepted = "append (.mode of a batch, .outputMode of a stream): messages are final"
            raise ConfigError(SOURCE, "mode", "overwrite", accepted)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publishes what one task has; without rows nobody is connected to."""
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is not None:
            with MqttPublisher(self._options.url, self._options.patience_s) as publisher:
                _publish(publisher, first)
                for batch in batches:
                    _publish(publisher, batch)
                publisher.finish()
        return WriterCommitMessage()


class BatchPublisher(_Publishes, DataSourceArrowWriter):
    """`df.write.format("tidings")`"""


class StreamPublisher(_Publishes, DataSourceStreamArrowWriter):
    """`df.writeStream.format("tidings")`"""


def _publish(publisher: MqttPublisher, batch: pa.RecordBatch) -> None:
    checked = set[str]()
    for row in batch.to_pylist():
        topic, payload = row["topic"], row["payload"]
        if topic not in checked:
            _check_topic(topic)
            checked.add(topic)
        data = payload.encode() if isinstance(payload, str) else payload or b""
        publisher.publish(topic, data, _pairs(row))


def _check_topic(topic: str | None) -> None:
    if topic is None:
        raise PublishError("a row has no topic: null was given")
    try:
        check_topic(topic)
    except TopicError as fault:
        raise PublishError(f"a row cannot be published: {fault}") from None


def _pairs(row: dict[str, Any]) -> UserProperties:
    """User properties: what the columns state, then the map without what they have stated."""
    stated = {
        name: property_text(row[column])
        for column, name in STATED.items()
        if row.get(column) is not None
    }
    mapped = [(name, text or "") for name, text in row.get("properties") or ()]
    return (*stated.items(), *((name, text) for name, text in mapped if name not in stated))
