"""What does a TOML file say? The document in it, or one clear error."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

from tidings.core.errors import ConfigError, FileError


def read_toml(path: Path, named_by: str = "") -> dict[str, Any]:
    """The document in a file; every way in which that can fail is one clear error. `named_by` is
    the file that names this one, and in which field, if it does not come from a person's hand."""
    try:
        return deepcopy(_parsed(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FileError(str(path), error.strerror, named_by) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), "file", "bytes", "text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), "syntax", str(error), "TOML (see toml.io)") from None


@lru_cache(maxsize=64)
def _parsed(text: str) -> dict[str, Any]:
    """A study is read to list it, to run it and to judge it, and parsing takes longest of all."""
    return tomllib.loads(text)
