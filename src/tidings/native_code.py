"""Which code runs: the source as it stands, or what was compiled of it?

`make native` compiles the rooms through which every message goes (`native/build.py`) into a folder
of the repository. The package that goes to Spark's executors has a copy of that folder inside.
What was compiled runs only as long as all that it was made of is the same: its
modules call each other without a look at anything else. After an edit everything is interpreted
again, until the next build. What another Python or another machine has compiled, and what cannot be
loaded, is passed over as well. Both do the same; compiled code is faster.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

SOURCES = Path(__file__).parent.parent
PLACE = "packaged/native"  # in a package that was built or shipped; in a source tree see `BUILT`
INSIDE, BESIDE = SOURCES / "tidings" / PLACE, SOURCES.parent / "build" / "native"
BUILT = INSIDE if INSIDE.is_dir() else BESIDE
INDEX = "index.json"  # in `BUILT`: which folder, for which Python, of which sources
LIBRARY = "tidings__mypyc"  # which all compiled modules are in
SWITCH = "TIDINGS_NATIVE"  # in the environment; 0: interpret in any case
COMPILED = "compiled"
# What to do about it, where there is a repository to do it in.
ADVICE = ": make native" if (SOURCES.parent / "native" / "build.py").exists() else ""


class CompiledModules(MetaPathFinder):
    """Finds what was compiled before Python looks for its source."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(fullname)
        return spec_from_file_location(fullname, file) if file else None


def fingerprint(sources: Path, names: Sequence[str]) -> str:
    """Of the sources of these files, in this order."""
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        digest.update((sources / name).read_bytes())
    return digest.hexdigest()


def use_compiled_code() -> str:
    """Let the modules that follow come from what was compiled, where there is any. Returns which
    code runs: `COMPILED`, or interpreted and why."""
    found = compiled_modules()
    if isinstance(found, str):
        return f"interpreted ({found})"
    sys.meta_path.insert(0, found)
    try:
        import_module(LIBRARY)
    except ImportError as error:  # made for a newer C library, or no code may be loaded from there
        sys.meta_path.remove(found)
        return f"interpreted (what was compiled cannot be loaded here: {error})"
    return COMPILED


def compiled_modules() -> CompiledModules | str:
    """What there is to run, or why there is nothing."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    try:
        index = json.loads((BUILT / INDEX).read_text())
        folder, suffix = BUILT / index["fingerprint"], index["suffix"]
        files = {name.replace("/", "."): folder / (name + suffix) for name in index["modules"]}
        if suffix != EXTENSION_SUFFIXES[0]:
            return f"it was compiled for another Python or machine{ADVICE}"
        if fingerprint(SOURCES, index["sources"]) != index["fingerprint"]:
            return f"the source has changed since it was compiled{ADVICE}"
        if not all(map(Path.exists, files.values())):
            return f"a part of what was compiled is missing{ADVICE}"
    except (OSError, ValueError, KeyError, TypeError):
        return (
            f"to compile it, which is faster{ADVICE}" if ADVICE else "it came without compiled code"
        )
    return CompiledModules(files)


def compiled_files() -> dict[str, Path]:
    """What a copy of this package needs in its `PLACE` to run compiled, by the names there; nothing
    if this one does not, or should not."""
    if isinstance(compiled_modules(), str):
        return {}
    index = json.loads((BUILT / INDEX).read_text())
    folder, suffix = index["fingerprint"], index["suffix"]
    names = (INDEX, *(f"{folder}/{name}{suffix}" for name in index["modules"]))
    return {name: BUILT / name for name in names}
