"""Which settings of Spark suit the size of a folder? Small ones need speed, large ones memory.

Large
-----
Spark decides by the size of files what it broadcasts, but a row of `published` may explode into a
hundred outcomes. It keeps the percentiles of 128 groups in memory before it sorts. And one
partition per core, our default on one machine, holds too much. From `LARGE_BYTES` on these three
are changed, so that any amount of rows is analysed in any amount of memory. Below that the usual
settings are faster.

Small
-----
Below `SMALL_BYTES` nearly all time goes into planning. So no plan is made again while it runs, and
none is compiled to Java.

Tiny
----
Below `TINY_BYTES` most tasks have next to nothing to do either. So every table is read as one
partition: then little is exchanged between partitions, and what is joined and counted is one task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

TINY_BYTES = 150_000  # of files; from 250 kB on, one task saves nothing any more
SMALL_BYTES = 4_000_000  # of files
LARGE_BYTES = 64_000_000  # of files
PARTITION_BYTES = 8_000_000  # of files, for each partition of what is made of them
FALLBACK = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
BROADCAST_BELOW = "spark.sql.autoBroadcastJoinThreshold"
PARTITIONS = "spark.sql.shuffle.partitions"
NO_BROADCASTS = {BROADCAST_BELOW: "-1"}
LITTLE_PLANNING = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
ONE_TASK = {PARTITIONS: "1"} | NO_BROADCASTS  # a broadcast would be a job of its own


@contextmanager
def settings_for_size(spark: SparkSession, size_bytes: int) -> Iterator[None]:
    """The settings that suit files of this size, all together."""
    wanted = settings_for_little(size_bytes)
    if size_bytes >= LARGE_BYTES:
        partitions = max(int(spark.conf.get(PARTITIONS) or 1), size_bytes // PARTITION_BYTES)
        wanted = {FALLBACK: "4", PARTITIONS: str(partitions)} | NO_BROADCASTS
    with temporary_settings(spark, wanted):
        yield


def settings_for_little(size_bytes: int) -> dict[str, str]:
    """Those that spare work which few rows are not worth; none for many rows."""
    planning = LITTLE_PLANNING if is_small(size_bytes) else {}
    return planning | (ONE_TASK if is_tiny(size_bytes) else {})


@contextmanager
def temporary_settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """These settings, and afterwards again those that were there before."""
    before = {name: str(spark.conf.get(name)) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def is_small(size_bytes: int) -> bool:
    """Whether files of this size are analysed before Spark's compiled code would be any faster."""
    return size_bytes < SMALL_BYTES


def is_tiny(size_bytes: int) -> bool:
    """Whether one task is faster than several that exchange what they found."""
    return size_bytes < TINY_BYTES
