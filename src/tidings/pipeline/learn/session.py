"""Which Spark suits what is learned from? Chosen before Java starts: its memory cannot be changed
afterwards.

Tables
------
Java takes what it may have before it tidies up, however little of it is in use. What learning from
a table holds in memory hardly grows with its rows, as Spark puts the rest on disk: of 1.4 and of
4.2 million rows 250 MB of Java's memory were in use at most. So a table gets a limit twice as high,
and some more with its size, for links with long names and for whatever else was not measured. The
work is cut into more parts than there are cores, so that each of them is small.

The figures of all links come to this process in one piece, of which Java has several copies at a
time. Most of it is the same few texts again and again, so compressed they are next to nothing.

Traces
------
They are told by many kinds of rows, of which more than that may have to be in memory: they keep the
usual limit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from tidings.pipeline.analyse.spark_settings import LARGE_BYTES, PARTITIONS, is_small
from tidings.pipeline.learn.measurements import Input, InputKind
from tidings.pipeline.session import LOCAL_MASTER, MEMORY, is_local, spark_session

LEAST_MEMORY_MB, MOST_MEMORY_MB = 512, 4096  # of Java; the most is the usual limit
MEMORY_FOR_BYTES = 8  # more, for each byte of the file
PARTITION_BYTES = 1_000_000  # of the file
COMPRESSED = {"spark.sql.execution.arrow.compression.codec": "zstd"}


def learning_session(
    given: Input, master: str | None = None, more: Mapping[str, str] | None = None
) -> SparkSession:
    """A session for this input; `more` are settings of Spark by name, instead of ours.

    Also for a table that is not small Java compiles its code once and has its simplest way to tidy
    up: the other ways save no time before some minutes have passed, and take memory."""
    size_bytes, local = given.size_bytes(), is_local(master or LOCAL_MASTER)
    ours = learning_settings(given.kind, size_bytes, local)
    brief = size_bytes < LARGE_BYTES if given.kind == "table" else is_small(size_bytes)
    return spark_session(master, "tidings learn", ours | dict(more or {}), brief)


def learning_settings(kind: InputKind, size_bytes: int, local: bool) -> dict[str, str]:
    """Those that differ from any other session's; a cluster's memory and parts are its own."""
    if is_small(size_bytes):
        return {}
    if kind == "traces" or not local:
        return COMPRESSED
    memory_mb = LEAST_MEMORY_MB + MEMORY_FOR_BYTES * size_bytes // 1_000_000
    partitions = max(os.cpu_count() or 1, size_bytes // PARTITION_BYTES)
    chosen = {MEMORY: f"{min(memory_mb, MOST_MEMORY_MB)}m", PARTITIONS: str(partitions)}
    return COMPRESSED | chosen
