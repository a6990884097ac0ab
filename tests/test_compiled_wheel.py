"""Does a wheel with compiled modules run them where it is installed, and the source elsewhere?

The wheel holds what `make native` has compiled: nothing is compiled here.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tidings import CODE, __version__
from tidings.native_code import COMPILED, INDEX, PLACE, SWITCH, compiled_files

pytestmark = pytest.mark.skipif(
    CODE != COMPILED, reason="the wheel holds what `make native` compiles; see `make test-native`"
)

PROJECT = Path(__file__).parent.parent
BUILT_FROM = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
FOLDERS = ("src", "scenarios", "studies")
NO_COMPILER = "import sys; sys.exit('cc: not found')"

# What compiling needs is in the environment of these tests, but not where a wheel is installed.
INSTALLED = """
import runpy, sys
sys.modules.update(dict.fromkeys(("mypy", "mypyc", "mypy_extensions")))
runpy.run_module("tidings", run_name="__main__", alter_sys=True)
"""
SIMULATE = ("simulate", "mesh20", "--set", "run.seconds=5", "--json", "-q")


def a_project(copy: Path) -> Path:
    """A copy, because building leaves files behind. It cannot compile."""
    for name in BUILT_FROM:
        shutil.copy(PROJECT / name, copy)
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
    (copy / "native").mkdir()
    (copy / "native" / "build.py").write_text(NO_COMPILER)
    return copy


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `make native` was run before."""
    project = a_project(tmp_path_factory.mktemp("project"))
    for name, file in compiled_files().items():
        there = project / "build" / "native" / name
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, there)
    return project


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = pip_wheel(project, folder, native="1")
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


def pip_wheel(project: Path, folder: Path, native: str) -> "subprocess.CompletedProcess[str]":
    options = ("--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", folder)
    return subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, project],
        env=os.environ | {SWITCH: native, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def said(package: Path, here: Path, *arguments: str, native: str = "") -> str:
    """By a fresh process that has this package, and no folder of the project."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(package), SWITCH: native},
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def digest(package: Path, here: Path, native: str = "") -> str:
    report = json.loads(said(package, here, "-c", INSTALLED, *SIMULATE, native=native))
    assert report["publications"] > 0
    return str(report["digest"])


def test_without_a_compiler_there_is_no_wheel_of_compiled_code_and_no_other_instead(
    tmp_path: Path,
) -> None:
    (tmp_path / "project").mkdir()
    wheels = tmp_path / "wheels"
    built = pip_wheel(a_project(tmp_path / "project"), wheels, native="1")
    assert built.returncode != 0
    assert "cc: not found" in built.stderr
    assert "No wheel was made. TIDINGS_NATIVE=1 asks for compiled code" in built.stderr
    assert not list(wheels.glob("*"))


def test_a_wheel_of_compiled_code_is_named_after_this_python_and_this_kind_of_machine(
    wheel: Path,
) -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name == f"tidings-{__version__}-{python}-{python}-{machine}.whl"


def test_unless_somebody_asks_the_wheel_is_for_every_machine(project: Path, tmp_path: Path) -> None:
    built = pip_wheel(project, tmp_path, native="")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.iterdir()
    assert wheel.name == f"tidings-{__version__}-py3-none-any.whl"
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if PLACE in name]


def test_where_it_is_installed_compiled_code_runs(installed: Path, tmp_path: Path) -> None:
    assert (
        said(installed, tmp_path, "-c", INSTALLED, "--version")
        == f"tidings {__version__}, {COMPILED}"
    )
    world = "import tidings.sim.world as world; print(world.__file__)"
    file = Path(said(installed, tmp_path, "-c", world))
    assert file.is_relative_to(installed / "tidings" / PLACE)
    assert file.suffix != ".py"


def test_it_simulates_what_the_source_does(installed: Path, tmp_path: Path) -> None:
    interpreted = digest(PROJECT / "src", tmp_path, native="0")
    assert digest(installed, tmp_path) == interpreted


def test_another_python_runs_the_source_that_is_in_it(installed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(installed, elsewhere)
    index = elsewhere / "tidings" / PLACE / INDEX
    made = json.loads(index.read_text())
    index.write_text(json.dumps(made | {"suffix": ".cpython-27-of-another-machine.so"}))
    version = said(elsewhere, tmp_path, "-c", INSTALLED, "--version")
    why = "it was compiled for another Python or machine"
    assert version == f"tidings {__version__}, interpreted ({why})"
    assert digest(elsewhere, tmp_path) == digest(installed, tmp_path)
