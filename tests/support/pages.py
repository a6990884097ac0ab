"""Reading what a page of the documentation tells its reader to write."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python_blocks(page: Path) -> list[str]:
    """The Python code on a page, block by block."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def toml_blocks(page: Path) -> list[str]:
    return re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)


def commands(page: Path) -> list[str]:
    """What a page tells its reader to type, line by line and without comments."""
    found = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.M):
        if not language:
            lines = block.replace("\\\n", " ").splitlines()
            found += [line.partition(" #")[0].strip() for line in lines]
    return [line for line in found if line]


def package_with(page: Path, folder: Path, file: str) -> Path:
    """A copy of the package in which a reader has followed a page that tells of one new file and of
    one line for the registry of its room; what PYTHONPATH names."""
    source, compiled = ROOT / "src" / "tidings", shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / "tidings", ignore=compiled)
    module, line = python_blocks(page)
    place = folder / "tidings" / file
    place.write_text(module)
    registry = place.with_name("__init__.py")
    registry.write_text(registry.read_text() + "\n" + line)
    return folder
