"""A scenario is found by its path, or by its name wherever Tidings is installed."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tidings.core.errors import FileError
from tidings.files.packaged import packaged_folder
from tidings.native_code import SWITCH
from tidings.scenarios.find import find_scenario, packaged_scenarios
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up

PROJECT = Path(__file__).parents[2]
BUILT_FROM = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
FOLDERS = ("src", "scenarios", "studies")


def test_a_name_is_that_of_a_packaged_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_scenario("mesh20") == PROJECT / "scenarios" / "mesh20.toml"
    (tmp_path / "seattle").mkdir()
    assert find_scenario("seattle").parent == PROJECT / "scenarios"
    (tmp_path / "mesh20").write_text("")
    assert find_scenario("mesh20") == Path("mesh20")  # a file here comes first
    assert find_scenario(str(tmp_path)) == tmp_path  # whose reader says that it is a folder


def test_a_name_that_is_not_known_is_met_with_those_that_are() -> None:
    with pytest.raises(FileError) as caught:
        find_scenario("mesh200")
    said = str(caught.value)
    assert said.startswith("mesh200: No such file or directory. With Tidings come the scenarios")
    assert all(f" {name}" in said for name in packaged_scenarios())
    assert said.endswith(" Did you mean 'mesh20'?")
    with pytest.raises(FileError, match=r"^here/x\.toml: No such file .* att, bounded, "):
        find_scenario("here/x.toml")


@pytest.mark.parametrize("name", packaged_scenarios())
def test_every_packaged_scenario_can_be_set_up(name: str) -> None:
    assert set_up(load(find_scenario(name))).overlay.brokers


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel holds, without the project around it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # building leaves files behind
    source.mkdir()
    for name in BUILT_FROM:
        shutil.copy(PROJECT / name, source)
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(PROJECT / name, source / name, ignore=ignored)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", folder, source)
    environment = os.environ | {SWITCH: "0"}  # a compiled one: tests/test_compiled_wheel.py
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options], env=environment, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "installed")
    shutil.rmtree(source)
    return folder / "installed"


def tidings(installed: Path, here: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "tidings", *arguments]
    done = subprocess.run(command, env=environment, cwd=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["mesh20", "seattle", ""])
def test_an_installed_package_has_its_scenarios(name: str, installed: Path, tmp_path: Path) -> None:
    second = ("--set", "run.seconds=1", "--set", "run.start_s=1", "--set", "run.drain_s=1")
    short = (*second, "--json", "-q")
    found = json.loads(tidings(installed, tmp_path, "simulate", *([name] if name else []), *short))
    here = set_up(load(PROJECT / "scenarios" / f"{name or 'mesh20'}.toml", {"run.seconds": 1}))
    assert found["scenario"] == here.scenario.run.name
    assert found["publications"] > 0


def test_an_installed_package_has_its_studies(installed: Path, tmp_path: Path) -> None:
    listed = json.loads(tidings(installed, tmp_path, "study", "list", "--json"))["studies"]
    names = {each["study"] for each in listed}
    assert {"dcrd-fig2", "bounded-beyond"} <= names
    assert names <= {path.stem for path in packaged_folder("studies").glob("*.toml")}
