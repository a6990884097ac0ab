"""How does Spark start? The one place that knows.

Local mode is the default and stays on the loopback interface; another master (a standalone
cluster, Kubernetes, YARN) gets the same session, with addresses and parallelism left to it, and
executors that run this very package. A task whose process dies is tried again in either mode.

For `brief` work Java compiles its code once and quickly: most of a short job's time goes into that,
and Java's second, thorough compilation pays off only after a minute or so. Any work starts faster
with an archive of Spark's classes (`class_archive`). An interrupt waits until Spark has started, as
a JVM that is left halfway never ends.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread, current_thread, main_thread
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tidings.core.errors import ConfigError, TidingsError, first_line
from tidings.pipeline.class_archive import archive_options
from tidings.pipeline.java import java_home
from tidings.pipeline.shipping import ship_package

LOCAL_MASTER = "local[*]"
TASK_TRIES = 4  # Spark's own number on a cluster; local mode would have one
TRIES = "spark.task.maxFailures"
WORKERS_PYTHON = "spark.pyspark.python"
MEMORY = "spark.driver.memory"
LOOPBACK = "127.0.0.1"
SILENT_WITHIN_S = 5.0
ENDS_WITHIN_S = 5.0
QUIET_LOGS = Path(__file__).absolute().with_name("log4j2.properties")

# A function without types, so called by this name.
_launch: Callable[[SparkConf, dict[str, Any]], Any] = launch_gateway

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET = f"-Dlog4j2.configurationFile={QUIET_LOGS.as_uri()}"
# One compiler alone would get 48 MB for what it compiles. Spark fills that in minutes; from then on
# Java spends time on throwing code away, and compiles it again.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

StartSpark = Callable[[], SparkSession]  # called only if there is work for Spark

EVERYWHERE = {
    # Spark's errors would name our lines, for which each call tells Java where it was made.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    TRIES: str(TASK_TRIES),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
LOCALLY = {
    MEMORY: "4g",  # at most: driver and executor are one process here
    # By itself 64 MB, of which each sort, sum or join takes one or more, also for a single row. A
    # task has at most 8192 pages, so this suffices for any memory that a machine has per core.
    "spark.buffer.pageSize": "4m",
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    # Spark's 200 is for clusters: here each partition beyond the cores only costs a task.
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    # From 32 files on Spark would look at each in a task of its own; here looking is quicker.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}


def spark_session(
    master: str | None = None,
    app: str = "tidings",
    more: Mapping[str, str] | None = None,
    brief: bool = False,
) -> SparkSession:
    """The running session, or a new one; the first call in a process takes a few seconds.

    `more` are settings of Spark by name, instead of ours. `brief` is for little work, on this
    machine.
    """
    master = _checked(master or LOCAL_MASTER)
    home = java_home()
    ours = EVERYWHERE | {JAVA_OPTIONS: java_options(home, brief and is_local(master))}
    settings = ours | (LOCALLY if is_local(master) else {}) | dict(more or {})
    master = _with_tries(master, settings[TRIES])
    _prepare_environment(master, settings, home)
    chosen = SparkConf().setMaster(master).setAppName(app).setAll(list(settings.items()))
    for name in (None, "py4j.clientserver"):  # a logger's filters do not hold for those below it
        logging.getLogger(name).addFilter(_is_no_interrupt)
    is_new = SparkContext._active_spark_context is None
    with _interrupts_wait() as hold:
        _start_java(chosen)
        spark = _started(chosen, master, hold)
        if is_new:
            _let_java_go_in_silence(spark.sparkContext)
        if is_new and not is_local(master):
            ship_package(spark.sparkContext)
    return spark


def java_options(home: Path, brief: bool) -> str:
    """Of the driver, whose Java is that of this home."""
    return " ".join(filter(None, (QUIET, BRIEF if brief else "", archive_options(home))))


def task_tries(spark: SparkSession) -> int:
    """How often a task is tried whose process dies."""
    context = spark.sparkContext
    local = re.fullmatch(r"local\[[^],]+,\s*([0-9]+)\s*\]", str(context.master))
    return int(local[1] if local else context.getConf().get(TRIES, str(TASK_TRIES)))


def _started(settings: SparkConf, master: str, hold: Callable[[], None]) -> SparkSession:
    try:
        SparkContext.getOrCreate(settings)
        hold()
        return SparkSession.builder.config(conf=settings).getOrCreate()
    except Exception as error:  # of Python's side, of Java's, or of what joins them
        problem = re.search(r"^(?:\w+\.)+\w+(?:Error|Exception): (.+)", str(error), re.MULTILINE)
        text = problem[1] if problem else first_line(error)
        raise TidingsError(f"Spark could not start with the master {master}: {text}") from error


def _let_java_go_in_silence(context: SparkContext) -> None:
    """A JVM that ends in the middle of a job leaves PySpark's server of accumulators with half a
    word; it would print a traceback to somebody who has only pressed Ctrl-C."""
    server = context._accumulatorServer
    print_traceback = server.handle_error

    def handle_error(request: Any, client: Any) -> None:
        if not isinstance(sys.exception(), EOFError | OSError):
            print_traceback(request, client)

    vars(server)["handle_error"] = handle_error  # of this server only


def java_has_ended(error: Exception) -> bool:
    """Whether the JVM that this process has started is gone, after an error in a talk with it. All
    that Python says then is that a connection was refused or cut."""
    started = getattr(SparkContext._gateway, "proc", None)  # absent: somebody else has started it
    if started is None:
        return False
    if isinstance(error, ConnectionError | Py4JNetworkError):
        with suppress(TimeoutExpired):  # its sockets close a little before it ends
            started.wait(ENDS_WITHIN_S)
    return started.poll() is not None


def silence_java() -> None:
    """Before this process ends with a job that is still going on: no word of what Java thinks of
    that. Asked from another thread, as this one may have been interrupted in a talk with Java."""
    context = SparkContext._active_spark_context
    if context is not None:
        asking = Thread(target=_turn_logs_off, args=(context,), daemon=True)
        asking.start()
        asking.join(SILENT_WITHIN_S)


def _turn_logs_off(context: SparkContext) -> None:
    with suppress(Exception):  # Java may be gone already
        context.setLogLevel("OFF")


def _start_java(settings: SparkConf) -> None:
    """In a session of its own: a signal to all of ours (`timeout`, a batch system) is for Python to
    answer, and cannot be answered in good order once the JVM is gone."""
    if SparkContext._gateway is None:
        gateway = _launch(settings, {"start_new_session": True})
        SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _interrupts_wait() -> Iterator[Callable[[], None]]:
    """Ctrl-C, and SIGTERM where it means the same, count at the end; a second one counts at once.

    What this gives is to be called when Spark has put a handler of its own in place: that one would
    talk to Java in the middle of another talk with it, and log what comes of that.
    The handlers of before are back afterwards, not the one that Spark puts in their place: who was
    started in the background, to ignore Ctrl-C, still does.
    """
    if current_thread() is not main_thread():  # only that one may handle signals
        yield lambda: None
        return
    waiting: list[int] = []

    def remember(number: int, frame: object) -> None:
        if waiting:
            raise KeyboardInterrupt
        waiting.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.getsignal(n) for n in numbers}
    ours = [n for n in numbers if before[n] is signal.default_int_handler]

    def hold() -> None:
        for number in ours:
            signal.signal(number, remember)

    hold()
    try:
        yield hold
    finally:
        for number, handler in before.items():
            if handler is not None:  # else it is not Python's, and cannot be put back
                signal.signal(number, handler)
    if waiting:
        raise KeyboardInterrupt


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J logs an interrupt, with a traceback, before it passes it on; and what goes wrong while
    it does."""
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is None


def _checked(master: str) -> str:
    """Spark would start a JVM before it says the same, in thirty lines."""
    if not re.fullmatch(r"local(\[.+\])?|(spark|k8s)://.+|yarn", master):
        accepted = "local[CORES], spark://HOST:PORT, k8s://https://HOST:PORT or yarn"
        raise ConfigError("Spark", "master", master, accepted)
    return master


def is_local(master: str) -> bool:
    """Whether all of Spark runs on this machine."""
    return master.startswith("local")


def _with_tries(master: str, tries: str) -> str:
    """`local[2]` as `local[2,4]`: there, only the master can say how often a task is tried."""
    return re.sub(r"^local(\[([^],]+)\])?$", lambda m: f"local[{m[2] or 1},{tries}]", master)


def _prepare_environment(master: str, settings: Mapping[str, str], home: Path) -> None:
    """What the JVM and the Python workers read when they start; later changes have no effect.

    On a cluster the person may know a better Python for the workers than the path of this one.
    A JVM of its own puts the command together that starts Spark, which takes half a second.
    """
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", BRIEF)
    if is_local(master):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
        os.environ["PYSPARK_PYTHON"] = sys.executable
    elif WORKERS_PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[WORKERS_PYTHON]
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
