"""Compile the rooms through which every message goes: `make native`, one to three minutes.

What is compiled
----------------
All modules of `ROOMS` that can be: not those that define a `Struct`, which goes on a wire or into a
file and would lose its annotations, and not those that need what native classes do not have.
They are compiled by mypyc as one library, so that they call each other directly.

Where it goes
-------------
Into a folder of `build/native` whose name is the fingerprint of all sources; the index, which is
written last, names it. `tidings.native_code` looks there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import EXTENSION_SUFFIXES
from io import StringIO
from pathlib import Path

from native_sources import UnfitError, native_source

from tidings.files.folders import replaced
from tidings.native_code import BUILT, INDEX, LIBRARY, SOURCES, fingerprint

ROOMS = (
    "core/*.py",
    "core/links",
    "core/graphs",
    "linking",
    "routing",
    "scheduling",
    "broker",
    "sim/*.py",
    "mqtt",
    "live/driver.py",
    "live/clock.py",
    "live/mqtt",
    "live/links",
)
# What compiled code was made of: of these, also what stays interpreted, such as constants.
READ = (
    "broker",
    "core",
    "files",
    "linking",
    "live",
    "mqtt",
    "routing",
    "scheduling",
    "sim",
    "traces",
)
# What could be compiled, but must not be.
INTERPRETED = {"tidings/core/errors.py"}  # exceptions lose their attributes
# What is another text when it is compiled.
TWINS = {
    "tidings/core/values.py": Path(__file__).with_name("native_values.py"),
    "tidings/sim/agenda.py": Path(__file__).with_name("native_agenda.py"),
}
# mypy has checked the source already; here only what is compiled differs.
CHECKS = ("--strict", "--no-warn-unused-ignores", "--no-warn-unreachable")
WARNING = ": warning: "  # of generators that become lists, mostly: docs/guide/develop.md says so
GROUP = LIBRARY.removesuffix("__mypyc")  # which mypyc adds


def main() -> None:
    texts = dict(compilable())
    sources = [
        str(file.relative_to(SOURCES))
        for room in READ
        for file in sorted((SOURCES / "tidings" / room).rglob("*.py"))
    ]
    name = fingerprint(SOURCES, sources)
    folder, draft = BUILT / name, BUILT / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    print(f"Compiling {len(texts)} modules ...", flush=True)
    _write(texts, draft / "source")
    _compile(sorted(texts), draft)
    shutil.rmtree(folder, ignore_errors=True)  # not before: an interrupted build changes nothing
    (draft / "built").rename(folder)
    index = {
        "fingerprint": name,
        "suffix": EXTENSION_SUFFIXES[0],
        "sources": sources,
        "modules": [*(path.removesuffix(".py") for path in texts), LIBRARY],
    }
    replaced(BUILT / INDEX, lambda path: path.write_text(json.dumps(index)))
    shutil.rmtree(draft)
    for other in BUILT.iterdir():
        if other.is_dir() and other != folder:
            shutil.rmtree(other)
    print("Compiled: from now on this is what runs, until the source is edited.")


def compilable() -> list[tuple[str, str]]:
    """The path and the native text of each module that can be compiled."""
    found = []
    for room in ROOMS:
        top = SOURCES / "tidings"
        files = top.glob(room) if room.endswith(".py") else (top / room).rglob("*.py")
        for file in sorted(files):
            path = str(file.relative_to(SOURCES))
            try:
                text = native_source(file.read_text(), path)
            except UnfitError:
                if path not in TWINS:
                    continue
            if path in TWINS:
                text = TWINS[path].read_text()
            if file.name != "__init__.py" and path not in INTERPRETED:
                found.append((path, text))
    return found


def _write(texts: dict[str, str], source: Path) -> None:
    """All of the package, as mypy reads it: what is compiled in its native form."""
    shutil.copytree(
        SOURCES / "tidings", source / "tidings", ignore=shutil.ignore_patterns("__pycache__")
    )
    for path, text in texts.items():
        (source / path).write_text(text)


def _compile(sources: list[str], draft: Path) -> None:
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext
    from setuptools.errors import CompileError, LinkError

    os.chdir(draft / "source")  # tracebacks name files from here: as they stand under src
    said = StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            extensions = mypycify(
                [*sources, *CHECKS],
                opt_level="2",
                debug_level="0",
                group_name=GROUP,
                target_dir=str(draft / "c"),
            )
    except BaseException:
        print(*(each for each in said.getvalue().splitlines() if WARNING not in each), sep="\n")
        raise
    build = build_ext(Distribution({"name": GROUP, "ext_modules": extensions}))
    build.build_lib, build.build_temp = str(draft / "built"), str(draft / "objects")
    build.parallel = os.cpu_count() or 1
    build.ensure_finalized()
    try:
        build.run()
    except (CompileError, LinkError) as error:
        sys.exit(f"Compiling needs a C compiler and Python's headers, and has failed: {error}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted: what was compiled before, if anything, still runs.")
