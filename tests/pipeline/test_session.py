"""One session for all: quiet, local, in UTC, with this Python on its workers."""

import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from tidings.cli.options import spark_settings
from tidings.core.errors import ConfigError
from tidings.pipeline.session import (
    LOOPBACK,
    TASK_TRIES,
    _interrupts_wait,
    _with_tries,
    spark_session,
    task_tries,
)
from tidings.pipeline.shipping import package_archive

pytestmark = pytest.mark.xdist_group("spark")


def test_a_second_call_gives_the_same_session(spark: SparkSession) -> None:
    assert spark_session("local[2]").sparkContext is spark.sparkContext


def test_the_driver_listens_on_loopback_only_and_shows_no_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.host") == LOOPBACK
    assert spark.conf.get("spark.driver.bindAddress") == LOOPBACK
    assert spark.sparkContext.uiWebUrl is None


def test_workers_run_this_python(spark: SparkSession) -> None:
    executable = udf(lambda _: sys.executable, "string")
    assert spark.range(1).select(executable("id")).first()[0] == sys.executable


def test_timestamps_are_read_as_utc(spark: SparkSession) -> None:
    noon = spark.sql("select cast(unix_timestamp(timestamp '2020-06-01 12:00:00') as long)")
    assert noon.first()[0] == int(datetime(2020, 6, 1, 12, tzinfo=UTC).timestamp())


def test_frames_of_pandas_travel_as_arrow_and_leave_nothing_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    rows = spark.range(3).toPandas()
    assert spark.createDataFrame(rows).count() == 3
    assert list(tmp_path.iterdir()) == []


def test_a_task_is_tried_as_often_on_one_machine_as_on_a_cluster(spark: SparkSession) -> None:
    # How many cores it has is up to whichever test of this process came first.
    assert re.fullmatch(rf"local\[[2*],{TASK_TRIES}\]", spark.sparkContext.master)
    assert task_tries(spark) == TASK_TRIES


@pytest.mark.parametrize(
    ("master", "conf", "tries"),
    [
        ("local[2,1]", {"spark.task.maxFailures": "7"}, 1),
        ("local[*, 3]", {}, 3),
        ("spark://host:7077", {"spark.task.maxFailures": "7"}, 7),
        ("yarn", {}, TASK_TRIES),
    ],
)
def test_how_often_a_task_is_tried_is_said_by_the_session(
    master: str, conf: dict[str, str], tries: int
) -> None:
    context = SimpleNamespace(master=master, getConf=lambda: conf)
    assert task_tries(SimpleNamespace(sparkContext=context)) == tries  # type: ignore[arg-type]


def test_a_person_may_ask_for_more_tries_on_one_machine() -> None:
    assert _with_tries("local", "7") == "local[1,7]"
    assert _with_tries("local[2]", "7") == "local[2,7]"
    assert _with_tries("local[2,1]", "7") == "local[2,1]"


@pytest.mark.parametrize("master", ["nonsense", "spark:host", "local[2"])
def test_a_master_that_spark_does_not_know_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(ConfigError, match=r"master is .*spark://HOST:PORT"):
        spark_session(master)


def test_settings_of_spark_are_given_as_to_spark_submit() -> None:
    given = ["spark.executor.memory=2g", "spark.executor.extraJavaOptions=-Da=b"]
    assert spark_settings(given) == {
        "spark.executor.memory": "2g",
        "spark.executor.extraJavaOptions": "-Da=b",
    }
    assert spark_settings(None) == {}


@pytest.mark.parametrize("wrong", ["spark.executor.memory", "executor.memory=2g"])
def test_a_setting_that_spark_would_pass_over_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"accepted is: spark\.some\.name=value"):
        spark_settings([wrong])


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.default_int_handler])
def test_what_ctrl_c_meant_before_spark_started_it_means_afterwards(before: Any) -> None:
    usual = signal.signal(signal.SIGINT, before)
    try:
        with _interrupts_wait():
            signal.signal(signal.SIGINT, print)  # as Spark does
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, usual)


def test_an_interrupt_while_spark_starts_is_for_us_and_not_for_spark() -> None:
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    heard: list[str] = []

    def starting() -> None:
        with _interrupts_wait() as hold:
            signal.signal(signal.SIGINT, lambda *_: heard.append("by Spark"))
            hold()
            signal.raise_signal(signal.SIGINT)
            heard.append("the start goes on")

    try:
        with pytest.raises(KeyboardInterrupt):
            starting()
    finally:
        signal.signal(signal.SIGINT, usual)
    assert heard == ["the start goes on"]


@pytest.mark.parametrize(("error", "is_shown"), [(EOFError, False), (ValueError, True)])
def test_a_jvm_that_ends_in_the_middle_of_a_word_is_no_traceback(
    error: type[Exception], is_shown: bool, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        raise error
    except error:
        spark.sparkContext._accumulatorServer.handle_error(None, ("127.0.0.1", 1))
    assert (error.__name__ in capfd.readouterr().err) == is_shown


def test_the_archive_for_executors_is_a_package_that_python_can_import(tmp_path: Path) -> None:
    with ZipFile(package_archive()) as packed:
        packed.extractall(tmp_path / "tidings")
    found = subprocess.run(
        [sys.executable, "-c", "import tidings.pipeline.sweep.job as it; print(it.__file__)"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == f"{tmp_path}/tidings/pipeline/sweep/job.py"
