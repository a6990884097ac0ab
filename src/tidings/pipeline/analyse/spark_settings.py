"""How are more rows analysed than fit into memory, and few rows soon? By Spark's settings.

Spark judges what to broadcast by the size of files, where a row of `published` may explode into a
hundred outcomes; it keeps the percentiles of 128 groups at a time before it sorts; and a partition
per core, our default on one machine, is for less. Small folders keep these, which are faster. In
the smallest the time goes into plans, so none is made again while it runs, nor put into Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

LITTLE_BYTES = 4_000_000  # of files, up to which all time goes into plans
LARGE_BYTES = 64_000_000  # of files, from which on memory is spared
PARTITION_BYTES = 8_000_000  # of files, for each partition of what is made of them
FALLBACK = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
BROADCAST_BELOW = "spark.sql.autoBroadcastJoinThreshold"
PARTITIONS = "spark.sql.shuffle.partitions"
AT_ONCE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextmanager
def sparing(spark: SparkSession, size_bytes: int) -> Iterator[None]:
    """Settings under which any amount of rows is analysed in any amount of memory, where it is
    needed, and under which little is analysed soon."""
    wanted = dict[str, str]()
    if is_little(size_bytes):
        wanted = AT_ONCE
    elif size_bytes >= LARGE_BYTES:
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


def is_little(size_bytes: int) -> bool:
    """Whether Spark has analysed files of this size before it has made itself fast."""
    return size_bytes < LITTLE_BYTES
