"""In which format is a figure written? That of its file name's ending.

Files say nothing of when they were made: the same figure is the same file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidings.core.errors import ConfigError, one_of
from tidings.files.folders import replaced

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}  # and what they omit
DOTS_PER_INCH = 150  # of PNG


def check_format(name: str) -> str:
    """A `ConfigError` unless figures can be written so."""
    if name not in FORMATS:
        raise ConfigError("--format", "format", name, one_of(FORMATS, name))
    return name


def save(figure: Figure, path: Path) -> Path:
    """The file is whole or not there."""
    kind = check_format(path.suffix.removeprefix("."))

    def write(draft: Path) -> None:
        figure.savefig(draft, dpi=DOTS_PER_INCH, format=kind, metadata=FORMATS[kind])

    return replaced(path, write)
