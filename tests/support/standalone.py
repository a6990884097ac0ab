"""A real cluster of Spark on loopback, as a person starts it: a master and workers, one process
each, which know nothing of Tidings."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tidings.pipeline.class_archive import archive_options
from tidings.pipeline.java import java_home
from tidings.pipeline.session import BRIEF

HOST = "127.0.0.1"
STARTS_WITHIN_S = 180.0
DEPLOY = "org.apache.spark.deploy"

# Runs a command until its own input ends, as it does when we end, even if we are killed; then the
# command and all that it has started go at once.
LEASH = ("sh", "-c", '"$@" & cat; kill -KILL 0', "leash")

REGISTERED = "Successfully registered with driver"  # as an executor says it in its log


class Cluster:
    """A master, and workers of one core each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def start(self, workers: int) -> None:
        self._start("master", "master.Master", "--port", "0", "--webui-port", "0")
        self.master = self._said("master", rf"(spark://{HOST}:\d+)")
        names = [f"worker{number}" for number in range(workers)]
        for name in names:
            place = ["--work-dir", str(self._folder / "work" / name), "--webui-port", "0"]
            self._start(
                name, "worker.Worker", *place, "--cores", "1", "--memory", "1g", self.master
            )
        for name in names:
            self._said(name, "(registered with master)")

    def executors(self) -> list[int]:
        """Of each worker, how many have reported for work, in all applications so far: the driver
        does not miss one that is gone before that."""
        works = sorted((self._folder / "work").iterdir())
        return [sum(REGISTERED in log.read_text() for log in w.glob("*/*/stderr")) for w in works]

    def is_at_a_worker(self, file: str) -> bool:
        """Whether it is in the folder that a worker gives its executors."""
        return Path(file).is_relative_to(self._folder / "work")

    def kill_last_worker(self) -> None:
        """The power fails: neither the worker nor what it started gets to do anything more."""
        self._kill(self._processes.pop())

    def stop(self) -> None:
        while self._processes:
            self._kill(self._processes.pop())

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def _start(self, name: str, what: str, *arguments: str) -> None:
        """In a folder of its own, and in a process group of its own with all that it starts."""
        place, spark_home, java = self._folder / name, Path(pyspark.__file__).parent, java_home()
        place.mkdir(parents=True)
        environment = {
            "PATH": os.environ["PATH"],
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(spark_home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{BRIEF} {archive_options(java)}",
            "SPARK_LAUNCHER_OPTS": BRIEF,
        }
        command = [spark_home / "bin" / "spark-class", f"{DEPLOY}.{what}", "--host", HOST]
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                [*LEASH, *command, *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=place,
                env=environment,
                start_new_session=True,
            )
        self._processes.append(process)

    def _said(self, name: str, pattern: str) -> str:
        """What a process has written in its log, as soon as it has."""
        deadline = time.monotonic() + STARTS_WITHIN_S
        log = self._folder / name / "log"
        while not (found := re.search(pattern, log.read_text())):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        return found[1]


@contextmanager
def a_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """It ends with the block, whatever happens in there."""
    cluster = Cluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
