"""Files that draw or measure a real network: maps in GML, and tables of round trips."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.errors import ConfigError, FileError


def read_map(path: Path, source: str) -> str:
    """The text of a GML file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(str(path), error.strerror, f"{source}.path") from None
    except UnicodeDecodeError as error:
        raise ConfigError(source, "path", str(path), f"a GML file in UTF-8 ({error})") from None


def read_round_trips(path: Path, source: str) -> pa.Table:
    """The rows of a Parquet file; which columns they need, `core.topology.rtt` says."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read()
    except FileNotFoundError:  # Arrow's own words about it take three lines
        raise FileError(str(path), os.strerror(errno.ENOENT), f"{source}.path") from None
    except (OSError, pa.ArrowException) as error:
        accepted = f"a readable Parquet file ({error})"
        raise ConfigError(source, "path", str(path), accepted) from None
