"""How does Spark start? The one place that knows.

Local mode is the default and stays on the loopback interface; another master (a standalone
cluster, Kubernetes, YARN) gets the same session, with addresses and parallelism left to it.
An interrupt waits until Spark has started, as a JVM that is left halfway never ends.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tidings.pipeline.java import java_home

LOCAL_MASTER = "local[*]"
LOOPBACK = "127.0.0.1"
QUIET_LOGS = Path(__file__).with_name("log4j2.properties")

# A function without types, so called by this name.
_launch: Callable[[SparkConf, dict[str, Any]], Any] = launch_gateway

EVERYWHERE = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={QUIET_LOGS.as_uri()}",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def spark_session(master: str | None = None, app: str = "tidings") -> SparkSession:
    """The running session, or a new one; the first call in a process takes a few seconds."""
    master = master or LOCAL_MASTER
    settings = EVERYWHERE | (_local_settings() if _is_local(master) else {})
    _prepare_environment(master)
    chosen = SparkConf().setMaster(master).setAppName(app).setAll(list(settings.items()))
    logging.getLogger().addFilter(_is_no_interrupt)
    with _interrupts_wait():
        _start_java(chosen)
        return SparkSession.builder.config(conf=chosen).getOrCreate()


def _start_java(settings: SparkConf) -> None:
    """In a session of its own: a signal to all of ours (`timeout`, a batch system) is for Python to
    answer, and cannot be answered in good order once the JVM is gone."""
    if SparkContext._gateway is None:
        gateway = _launch(settings, {"start_new_session": True})
        SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C, and SIGTERM where it means the same, count at the end; a second one counts at once.

    Python's own handlers are back afterwards, not the one that Spark puts in their place.
    """
    if current_thread() is not main_thread():  # signals are none of its business
        yield
        return
    waiting: list[int] = []

    def remember(number: int, frame: object) -> None:
        if waiting:
            raise KeyboardInterrupt
        waiting.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.getsignal(n) for n in numbers}
    ours = [n for n in numbers if before[n] is signal.default_int_handler]
    for number in ours:
        signal.signal(number, remember)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
    if waiting:
        raise KeyboardInterrupt


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J logs an interrupt, with a traceback, before it passes it on."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _local_settings() -> dict[str, str]:
    return {
        "spark.driver.memory": "4g",  # at most: driver and executor are one process here
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        # Spark's 200 is for clusters: here each partition beyond the cores only costs a task.
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }


def _prepare_environment(master: str) -> None:
    """What the JVM and the Python workers read when they start; later changes have no effect."""
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if _is_local(master):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
