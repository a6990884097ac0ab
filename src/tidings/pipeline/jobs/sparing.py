"""How are more rows analysed than fit into memory? With settings under which Spark spills.

Spark judges what to broadcast by the size of files, where a row of `published` may explode into a
hundred outcomes; it keeps the percentiles of 128 groups at a time before it sorts; and a partition
per core, our default on one machine, is for less. Small folders keep these, which are faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

LARGE_BYTES = 64_000_000  # of files, from which on memory is spared
PARTITION_BYTES = 8_000_000  # of files, for each partition of what is made of them
FALLBACK = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
BROADCAST_BELOW = "spark.sql.autoBroadcastJoinThreshold"
PARTITIONS = "spark.sql.shuffle.partitions"


@contextmanager
def sparing(spark: SparkSession, size_bytes: int) -> Iterator[None]:
    """Settings under which any amount of rows is analysed in any amount of memory, where it is
    needed; small folders keep Spark's own, which are faster."""
    if size_bytes < LARGE_BYTES:
        yield
        return
    partitions = max(int(spark.conf.get(PARTITIONS) or 1), size_bytes // PARTITION_BYTES)
    wanted = {FALLBACK: "4", BROADCAST_BELOW: "-1", PARTITIONS: str(partitions)}
    before = {name: str(spark.conf.get(name)) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
