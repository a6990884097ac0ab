"""What a wheel holds besides modules: the scenarios and studies at the root of this folder, and,
with `TIDINGS_NATIVE=1` in the environment, what `native/build.py` compiles.

All else is in `pyproject.toml`, which cannot say that a folder outside of a package goes into it.

A wheel is for every machine unless somebody asks: compiling takes minutes and a C compiler, and is
for one Python on one kind of machine. Who asks and cannot have it is told so, and gets no other
wheel instead.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import copy, copytree, rmtree

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent.absolute()
SOURCES = HERE / "src"
COMPILED = os.environ.get("TIDINGS_NATIVE") == "1"
REFUSED = (
    "No wheel was made. TIDINGS_NATIVE=1 asks for compiled code (without it, the wheel is for every"
    " machine), but "
)


class BuildWithFiles(build_py):
    """Modules, and the files that `tidings.files.packaged` and `tidings.native_code` find. An
    editable install needs no copies: it finds the folders themselves."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib, "tidings")
        rmtree(package / "packaged", ignore_errors=True)  # of an earlier build
        for folder in ("scenarios", "studies"):
            copytree(folder, package / "packaged" / folder)
        for name, file in (compiled() if COMPILED else {}).items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            copy(file, package / name)


class OfThisMachine(Distribution):
    """Its wheel is named after this Python and this kind of machine, if it holds compiled code."""

    def has_ext_modules(self) -> bool:
        return COMPILED


def compiled() -> dict[str, Path]:
    """By their names in the package. What `make native` has made is taken, if it is not too old."""
    sys.path.insert(0, str(SOURCES))
    from tidings.native_code import PLACE, compiled_files, compiled_modules

    if isinstance(compiled_modules(), str):
        compile_now()
    if isinstance(why_not := compiled_modules(), str):
        sys.exit(f"{REFUSED}{why_not}.")
    return {f"{PLACE}/{name}": file for name, file in compiled_files().items()}


def compile_now() -> None:
    path = os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "TIDINGS_NATIVE": "0"}
    command = [sys.executable, str(HERE / "native" / "build.py")]
    if subprocess.run(command, cwd=HERE, env=environment, check=False).returncode:
        sys.exit(f"{REFUSED}compiling failed, for the reason above.")


def needed_to_compile() -> list[str]:
    """mypy, and the packages whose types it reads."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    mypy = [name for name in project["optional-dependencies"]["dev"] if name.startswith("mypy")]
    return [*mypy, *project["dependencies"]]


setup(
    cmdclass={"build_py": BuildWithFiles},
    distclass=OfThisMachine,
    setup_requires=needed_to_compile() if COMPILED else [],
)
