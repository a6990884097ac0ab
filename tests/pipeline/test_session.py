"""One session for all: quiet, local, in UTC, with this Python on its workers."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from tidings.pipeline.session import LOOPBACK, spark_session

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return spark_session("local[2]")


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
