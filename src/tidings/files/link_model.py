"""What was learned about links, read from its file; and a clear error where it is none."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.core.errors import ConfigError, FileError, first_line
from tidings.core.links.model import LinkModel, link_model

ACCEPTED = "a link model, as written by `tidings learn`"


def read_link_model(path: Path, source: str = "", field: str = "link model") -> LinkModel:
    """The model in a file; whoever names it (`source`, `field`) is told what is wrong with it."""
    try:
        status = path.stat()
        return _read(str(path), status.st_mtime_ns, status.st_size)
    except FileNotFoundError as error:
        raise FileError(str(path), error.strerror, source and f"{source}: {field}") from None
    except (OSError, pa.ArrowException, ValueError) as error:
        problem = getattr(error, "strerror", None) or first_line(error)
        accepted = f"{ACCEPTED} (here: {problem})"
        raise ConfigError(source or str(path), field, str(path), accepted) from None


@lru_cache(maxsize=4)
def _read(path: str, changed_ns: int, size_bytes: int) -> LinkModel:
    """Files that did not change are read once."""
    with pq.ParquetFile(path) as file:
        return link_model(file.read())
