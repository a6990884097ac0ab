"""What a person gets wrong is one paragraph and exit code 2; never a traceback."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.children import start
from support.commands import tidings_here
from support.sweeps import TINY_SCENARIO, a_spec

from tidings.core.errors import ConfigError
from tidings.core.trace import TABLES
from tidings.files.folders import writable_folder
from tidings.traces.schemas import arrow_schema

TIDINGS = [sys.executable, "-m", "tidings"]
SMALL_FILE_BYTES = 4096
LONG_SCENARIO = TINY_SCENARIO.replace("seconds = 3", "seconds = 100000")


def tidings(*arguments: object) -> str:
    """What a command that must fail says; it says nothing else."""
    return only_a_paragraph(*tidings_here(*arguments))


def program(*arguments: object, prepare: Callable[[], None] | None = None) -> str:
    """The same of a program: of each command once, and where the process matters."""
    done = subprocess.run(
        [*TIDINGS, *map(str, arguments)], capture_output=True, text=True, preexec_fn=prepare
    )
    return only_a_paragraph(done.returncode, done.stdout, done.stderr)


def only_a_paragraph(code: int, out: str, said: str) -> str:
    assert code == 2, said
    assert out == ""
    assert said.startswith("tidings: ")
    assert said.count("\n") == 1, said
    return said


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    a_spec(tmp_path)
    return tmp_path / "tiny.toml"


@pytest.fixture
def a_file(tmp_path: Path) -> Path:
    path = tmp_path / "afile"
    path.write_text("not a folder")
    return path


def test_a_folder_is_made_with_its_parents_and_stays_empty(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "where"
    assert writable_folder(folder, "--out") == folder
    assert writable_folder(folder, "--out") == folder
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_names_the_option_and_the_value(a_file: Path) -> None:
    for folder in (a_file, a_file / "below", Path("/proc/x")):
        with pytest.raises(ConfigError, match="a folder that can be made and written to") as caught:
            writable_folder(folder, "--traces")
        assert (caught.value.source, caught.value.value) == ("--traces", str(folder))


def test_traces_cannot_go_to_a_file(scenario: Path, a_file: Path) -> None:
    said = program("simulate", scenario, "--traces", a_file)
    assert f"--traces: folder is '{a_file}'" in said
    assert "File exists" in said


NOT_THERE = "No such file or directory"


def test_a_file_or_folder_that_is_not_there_is_said_to_be(scenario: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for command in ("broker", "compact"):
        assert program(command, f"{gone}.toml") == f"tidings: {gone}.toml: {NOT_THERE}.\n"
    for command in ("sweep", "analyse"):
        assert tidings(command, f"{gone}.toml") == f"tidings: {gone}.toml: {NOT_THERE}.\n"
    assert program("watch", gone, "--once") == f"tidings: {gone}: {NOT_THERE}.\n"
    said = tidings("learn", gone, "--out", tmp_path / "x.parquet")
    assert said == f"tidings: {gone}: {NOT_THERE}.\n"
    for option in ("--replay", "--weather"):
        named = f"tidings: {gone}: {NOT_THERE} (named by {option}).\n"
        assert tidings("simulate", scenario, option, gone) == named
    named = f"{gone}: {NOT_THERE} (named by {scenario}: links.replay)"
    assert named in tidings("simulate", scenario, "--set", f"links.replay={gone}")


def test_a_mistake_in_an_option_is_not_laid_to_the_file(scenario: Path) -> None:
    said = tidings("simulate", scenario, "--set", "links.los_ratio=0.1")
    assert said.startswith("tidings: --set: links.los_ratio is 0.1, but accepted is: one of the")
    assert said.endswith(" Did you mean 'loss_ratio'?\n")
    said = tidings("simulate", scenario, "--strategy", "dtree")
    assert said.startswith("tidings: --strategy: broker.strategy is 'dtree'")
    scenario.write_text(TINY_SCENARIO.replace("topics", "topcis"))
    said = tidings("simulate", scenario, "--set", "links.loss_ratio=0.1")
    assert said.startswith(f"tidings: {scenario}: workload.topcis is 2")


def test_a_file_for_another_command_is_said_to_be(scenario: Path, tmp_path: Path) -> None:
    said = tidings("broker", scenario)
    assert f"{scenario} is a scenario, for `tidings simulate` and `tidings up`;" in said
    configuration = tmp_path / "broker.toml"
    configuration.write_text('name = "n1"\n')
    for command in ("simulate", "up"):
        said = tidings(command, configuration)
        assert f"{configuration} is a broker's configuration, for `tidings broker`;" in said


def limit_file_sizes() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_FILE_BYTES, SMALL_FILE_BYTES))


def test_a_disk_that_fills_is_named_and_leaves_no_draft(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(TINY_SCENARIO.replace("seconds = 3", "seconds = 100"))
    traces = tmp_path / "traces"
    said = program("simulate", scenario, "--traces", traces, "-q", prepare=limit_file_sizes)
    assert f"tidings: {traces}/" in said
    assert said.endswith(": File too large.\n")
    assert [path for path in traces.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("out", ["afile", "/proc/q"])
def test_a_sweep_looks_at_its_folder_before_spark_starts(
    out: str, a_file: Path, tmp_path: Path
) -> None:
    folder = a_file.parent / out
    said = tidings("sweep", a_spec(tmp_path), "--out", folder, "--master", "no-such-master")
    assert f"--out: folder is '{folder}'" in said


def test_analyse_names_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    broken = tmp_path / "published" / "x.parquet"
    broken.parent.mkdir()
    broken.write_text("not Parquet at all")
    said = tidings("analyse", tmp_path, "--master", "local[1]")
    assert str(broken) in said
    assert "a whole Parquet file of trace rows" in said


def test_analyse_looks_at_its_folder_before_spark_starts(a_file: Path, tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    rows = arrow_schema(TABLES["published"]).empty_table()
    pq.write_table(rows, tmp_path / "published" / "x.parquet")
    said = tidings("analyse", tmp_path, "--out", a_file, "--master", "no-such-master")
    assert f"--out: folder is '{a_file}'" in said


def test_ctrl_c_ends_a_simulation_without_a_traceback(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(LONG_SCENARIO)
    traces = tmp_path / "traces"
    process = start(
        [*TIDINGS, "simulate", str(scenario), "--traces", str(traces), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not traces.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 130
    assert [path for path in traces.rglob("*") if path.is_file()] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    hidden = tmp_path / "published" / "x.parquet"
    hidden.parent.mkdir()
    hidden.touch(mode=0o000)
    assert str(hidden) in tidings("analyse", tmp_path, "--master", "local[1]")


@pytest.mark.parametrize(
    ("ask", "command"),
    [
        (program, ("study", "run", "mesh20", "--quick")),
        (tidings, ("analyse", "no/such/folder")),
    ],
)
def test_a_figure_is_not_drawn_in_a_format_that_nobody_knows(
    ask: Callable[..., str], command: tuple[str, ...]
) -> None:
    said = ask(*command, "--format", "gif")
    assert said.startswith("tidings: --format: format is 'gif'")
    assert all(name in said for name in ("png", "pdf", "svg"))
