"""How does Python work on very many groups of rows? On all of a chunk at once, with arrays.

Spark's own way (`applyInPandas`) calls Python once for each group, which costs milliseconds however
small the group is: minutes for a hundred thousand links. Here a group's rows lie together and in
order, and a function gets tables of many whole groups, to be computed by array operations. The
tables are cut so that memory does not depend on how many rows there are; only a single group has to
fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

CHUNK_ROWS = 250_000  # some ten megabytes of numbers, and of as many between results

OfGroups = Callable[[pa.Table], pa.RecordBatch]
Starts = npt.NDArray[np.int64]


def in_groups(frame: DataFrame, keys: Sequence[str], order: Sequence[str]) -> DataFrame:
    """The rows of each group in one partition, one group after the other, each in this order."""
    return frame.repartition(*keys).sortWithinPartitions(*keys, *order)


def over_groups(
    grouped: DataFrame, keys: Sequence[str], function: OfGroups, schema: str
) -> DataFrame:
    """What the function makes of many whole groups at a time; for a frame of `in_groups`."""

    def of_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_groups(batches, keys):
            yield function(table)

    return grouped.mapInArrow(of_partition, schema)


def whole_groups(
    batches: Iterable[pa.RecordBatch], keys: Sequence[str], rows: int = CHUNK_ROWS
) -> Iterator[pa.Table]:
    """The same rows in tables of about so many, none of which ends within a group."""
    held, count, wanted = list[pa.RecordBatch](), 0, rows
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count < wanted:
            continue
        table = pa.Table.from_batches(held)
        last = int(group_starts(table, keys)[-1])
        if last:
            yield table.slice(0, last)
        held, count = table.slice(last).to_batches(), count - last
        wanted = max(rows, 2 * count)  # a group of very many rows is not looked at for each batch
    if count:
        yield pa.Table.from_batches(held)


def group_starts(table: pa.Table, keys: Sequence[str]) -> Starts:
    """The rows at which another group begins, the first among them."""
    changes = np.zeros(max(table.num_rows - 1, 0), bool)
    for key in keys:
        column = table[key].combine_chunks()
        changes |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    starts: Starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    return starts
