"""Where are the scenarios and studies that come with Tidings?

A wheel has copies of them inside the package (see `setup.py`). In a source tree, and so in an
editable install, they lie beside `src`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).parents[1]


def packaged_folder(name: Literal["scenarios", "studies"]) -> Path:
    """The folder of that name, which need not be there if somebody took the package apart."""
    inside = PACKAGE / "packaged" / name
    return inside if inside.is_dir() else PACKAGE.parents[1] / name
