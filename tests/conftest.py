"""What holds for all tests."""

import gc
import warnings
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import settings

pytest_plugins = ("support.children", "support.forgiven", "support.lanes")

# On a busy machine a slow example says nothing about the code.
settings.register_profile("tidings", deadline=None)
settings.load_profile("tidings")


# PySpark leaves the sockets of threads that have ended to the garbage collector, which complains in
# whatever test happens to run then. So complaints about sockets fail no test of Spark, and when a
# file of such tests has ended, its garbage is collected before the next one begins.
UNCLOSED = "ignore:Exception ignored in.*<socket.socket:pytest.PytestUnraisableExceptionWarning"


def uses_spark(marks: Iterable[pytest.Mark]) -> bool:
    return any(mark.name == "xdist_group" and mark.args == ("spark",) for mark in marks)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if uses_spark(item.iter_markers()):
            item.add_marker(pytest.mark.filterwarnings(UNCLOSED))


@pytest.fixture(scope="module", autouse=True)
def _collect_sparks_sockets(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if uses_spark(request.node.iter_markers()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
