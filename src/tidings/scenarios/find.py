"""Which file is meant by a scenario's name? A path, or one that comes with Tidings."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tidings.core.errors import FileError
from tidings.core.near_names import suggestion
from tidings.files.packaged import packaged_folder


def find_scenario(name: str) -> Path:
    """The file of a scenario, by its path or the name of a packaged one."""
    path, known = Path(name), packaged_scenarios()
    if name in known and not path.is_file():
        return known[name]
    if path.exists():
        return path
    names = f"With Tidings come the scenarios {', '.join(known)}"
    problem = f"{os.strerror(errno.ENOENT)}. {names}" if known else os.strerror(errno.ENOENT)
    raise FileError(name, problem, hint=suggestion(path.stem, known))


def packaged_scenarios() -> dict[str, Path]:
    """Those that come with Tidings, by name."""
    return {path.stem: path for path in sorted(packaged_folder("scenarios").glob("*.toml"))}
