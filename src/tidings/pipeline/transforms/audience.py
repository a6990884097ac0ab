"""Who should have got each message? Publications with their audience, as `traces.audience` has it.

Subscriptions are few beside publications, so every task is handed those of all runs, and answers
for its own part of what was published.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.core.trace import TABLES
from tidings.traces.audience import CHANGE_COLUMNS, INTERESTED, Audiences
from tidings.traces.schemas import arrow_schema

_PUBLISHED = arrow_schema(TABLES["published"])
_WITH_AUDIENCE = from_arrow_schema(_PUBLISHED.append(pa.field("interested", INTERESTED)))


def with_audience(published: DataFrame, subscribed: DataFrame) -> DataFrame:
    """Each publication with those who should have got it, as a column `interested`."""
    wishes = subscribed.select("run", *CHANGE_COLUMNS).toArrow()

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        audiences = Audiences()
        audiences.learn(wishes)
        for batch in batches:
            yield from audiences.told(pa.Table.from_batches([batch])).to_batches()

    return published.select(_PUBLISHED.names).mapInArrow(told, _WITH_AUDIENCE)
