"""One Spark session for all tests of the pipeline."""

import pytest
from pyspark.sql import SparkSession

from tidings.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return spark_session("local[2]", "tests")
