"""How does Spark start? The one place that knows.

Local mode is the default and stays on the loopback interface; another master (a standalone
cluster, Kubernetes, YARN) gets the same session, with addresses and parallelism left to it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tidings.pipeline.java import java_home

LOCAL_MASTER = "local[*]"
LOOPBACK = "127.0.0.1"
QUIET_LOGS = Path(__file__).with_name("log4j2.properties")

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
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _local_settings() -> dict[str, str]:
    return {
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
