"""Which code runs: the source as it stands, or what was compiled of it?

`make native` compiles the rooms through which every message goes (`native/build.py`) into a folder
of the repository. What was compiled runs only as long as all that it was made of is the same: its
modules call each other without a look at anything else. After an edit everything is interpreted
again, until the next build. Both do the same; compiled code is faster.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

SOURCES = Path(__file__).parent.parent
BUILT = SOURCES.parent / "build" / "native"
INDEX = "index.json"  # in `BUILT`: which folder, for which Python, of which sources
SWITCH = "TIDINGS_NATIVE"  # in the environment; 0: interpret in any case


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


def compiled_modules() -> CompiledModules | str:
    """What there is to run, or why there is nothing."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    try:
        index = json.loads((BUILT / INDEX).read_text())
        folder, suffix = BUILT / index["fingerprint"], index["suffix"]
        files = {name.replace("/", "."): folder / (name + suffix) for name in index["modules"]}
        if suffix != EXTENSION_SUFFIXES[0]:
            return "it was compiled for another Python: make native"
        if fingerprint(SOURCES, index["sources"]) != index["fingerprint"]:
            return "the source has changed since it was compiled: make native"
        if not all(map(Path.exists, files.values())):
            return "a part of what was compiled is missing: make native"
    except (OSError, ValueError, KeyError, TypeError):
        return "to compile it: make native"
    return CompiledModules(files)
