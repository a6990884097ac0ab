"""Which files of a trace folder hold every row once?

In a sweep's folder, those of finished points: what a point that was killed halfway has left is
passed over. Files there are named by the digest of what made them, so a point that two studies
share is read once. Elsewhere a file is known by its content (`fingerprints`), and a copy is not
read.
"""

from __future__ import annotations

from pathlib import Path

from tidings.core.errors import ConfigError
from tidings.traces.files import listed_files, settled
from tidings.traces.fingerprints import without_repeated_rows
from tidings.traces.points import finished_points, is_sweep


def trace_files(folder: Path) -> dict[str, list[Path]]:
    """The files of each table that hold every row once; a `ConfigError` if there is none at all."""
    if is_sweep(folder):
        names = set(finished_points(folder).column("point").to_pylist())
        return {table: _of_points(files, names) for table, files in listed_files(folder).items()}
    return settled(
        lambda: {table: _each_row_once(files) for table, files in listed_files(folder).items()}
    )


def _each_row_once(files: list[Path]) -> list[Path]:
    kept, left_out = without_repeated_rows(files)
    for each in left_out:
        if each.shared:
            accepted = f"files without common rows; it shares {each.shared} with {each.other}"
            raise ConfigError(str(each.file), "segments", "gathered twice", accepted)
    return kept


def _of_points(files: list[Path], names: set[str]) -> list[Path]:
    return list({file.stem: file for file in files if file.stem in names}.values())
