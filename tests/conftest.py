"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tidings import CODE
from tidings.native_code import COMPILED, SWITCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ("support.children", "support.forgiven", "support.lanes")

# On a busy machine a slow example says nothing about the code.
settings.register_profile("tidings", deadline=None)
settings.load_profile("tidings")


def pytest_configure() -> None:
    if os.environ.get(SWITCH) == "1" and CODE != COMPILED:
        pytest.exit(f"Compiled code is to be tested, but the code is {CODE}.", returncode=2)


def uses_spark(marks: Iterable[pytest.Mark]) -> bool:
    return any(mark.name == "xdist_group" and mark.args == ("spark",) for mark in marks)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One session for all tests of Spark in a process.

    Tests have few rows, so what Spark does for many is left out: planning again while it runs, and
    compiling plans. It takes half as long, and is what `tidings analyse` does with small folders.
    Commands that tests start as processes run with Spark's own settings.
    """
    from tidings.pipeline.analyse.spark_settings import LITTLE_PLANNING
    from tidings.pipeline.session import spark_session

    return spark_session("local[2]", "tests", LITTLE_PLANNING, brief=True)


# PySpark leaves the sockets of threads that have ended to the garbage collector, which complains in
# whatever test happens to run then. So complaints about sockets fail no test of Spark, and when a
# file of such tests has ended, its garbage is collected before the next one begins.
UNCLOSED = "ignore:Exception ignored in.*<socket.socket:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if uses_spark(item.iter_markers()):
            item.add_marker(pytest.mark.filterwarnings(UNCLOSED))


@pytest.fixture(scope="module", autouse=True)
def _one_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """The session is there before a test starts another one, and what it leaves is collected."""
    if not uses_spark(request.node.iter_markers()):
        yield
        return
    request.getfixturevalue("spark")
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
