"""Brokers, the client and the simulator run where the packages of the `spark` extra are missing."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.sweeps import TINY_SCENARIO

from tidings.cli.main import OF_THE_SPARK_EXTRA

PROJECT = Path(__file__).parents[2]

# As if they were not installed: whoever imports one is told so.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from tidings.cli.main import main
main()
"""


def tidings(*words: object) -> "subprocess.CompletedProcess[str]":
    program = WITHOUT.format(names=sorted(OF_THE_SPARK_EXTRA))
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_extra_is_what_the_project_says_it_is() -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    named = {text.partition(">")[0] for text in extras["optional-dependencies"]["spark"]}
    assert named == OF_THE_SPARK_EXTRA


def test_a_scenario_is_simulated(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY_SCENARIO)
    done = tidings("simulate", tmp_path / "tiny.toml", "--json", "--traces", tmp_path / "traces")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["publications"] > 0


def test_a_broker_can_run(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(f'name = "b"\ntraces = "{tmp_path / "traces"}"\n')
    done = tidings("broker", tmp_path / "b.toml", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["up", "pub", "sub", "compact"])
def test_other_commands_explain_themselves(command: str) -> None:
    assert tidings(command, "--help").returncode == 0


@pytest.mark.parametrize(
    "words",
    [("analyse", "."), ("learn", ".", "--out", "x.parquet"), ("study", "list"), ("watch", ".")],
)
def test_a_command_that_needs_the_extra_says_how_to_get_it(words: tuple[str, ...]) -> None:
    done = tidings(*words)
    assert done.returncode == 2
    assert "pip install 'tidings[spark]'" in done.stderr
    assert "Traceback" not in done.stderr
