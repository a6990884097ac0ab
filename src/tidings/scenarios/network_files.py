"""Files that draw or measure a real network: maps in GML, and tables of round trips."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.errors import ConfigError


def read_map(path: Path, source: str) -> str:
    """The text of a GML file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(source, "path", str(path), f"a readable GML file ({error})") from None


def read_round_trips(path: Path, source: str) -> pa.Table:
    """The rows of a Parquet file; which columns they need, `core.topology.rtt` says."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read()
    except (OSError, pa.ArrowException) as error:
        accepted = f"a readable Parquet file ({error})"
        raise ConfigError(source, "path", str(path), accepted) from None
