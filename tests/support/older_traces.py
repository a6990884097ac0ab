"""Traces of older versions: one that version 2 left, and the same run as it is written today."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq

from tidings.cli.simulate import simulate
from tidings.traces.files import parquet_files

OLDER = Path(__file__).parents[1] / "traces" / "older"
VERSION_2 = OLDER / "version-2"


def written_today(folder: Path) -> Path:
    """The traces of the run that left `VERSION_2`."""
    simulate(str(OLDER / "scenario.toml"), traces=folder, quiet=True, json=True)
    return folder


def version_1(folder: Path) -> Path:
    """The same rows as version 1 wrote them: it did not count header bytes."""
    shutil.copytree(VERSION_2, folder)
    for file in parquet_files(folder):
        rows = pq.ParquetFile(file).read().replace_schema_metadata({"tidings": "1"})
        if "header_bytes" in rows.column_names:
            rows = rows.drop_columns(["header_bytes"])
        pq.write_table(rows, file)
    return folder


def as_segments(traces: Path, folder: Path) -> Path:
    """A copy whose files are named as those of a live broker are, one more of each beside it."""
    for number, file in enumerate(parquet_files(traces)):
        place = folder / file.parent.name
        place.mkdir(parents=True)
        rows = pq.ParquetFile(file).read()
        half = rows.num_rows // 2
        pq.write_table(rows.slice(0, half), place / f"older-b1-{2 * number:06}.parquet")
        pq.write_table(rows.slice(half), place / f"older-b1-{2 * number + 1:06}.parquet")
    return folder
