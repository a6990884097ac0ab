"""How does a result reach the disk whole, in a folder that was looked at before the work began?"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from typing import Any

from tidings.core.errors import ConfigError, TidingsError


def writable_folder(path: Path, option: str) -> Path:
    """The folder, made if it is not there; an error before any work if it cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):  # rights alone do not tell: the file system may refuse
            return path
    except OSError as error:
        accepted = f"a folder that can be made and written to (here: {error.strerror})"
        raise ConfigError(option, "folder", str(path), accepted) from None


@contextmanager
def held_alone(lock: Path, busy: str) -> Iterator[None]:
    """One process at a time: if another holds the lock, an error with the text `busy`. The lock
    ends with the process, however that ends."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TidingsError(busy) from None
        yield


def replaced(path: Path, save: Callable[[Path], Any]) -> Path:
    """The path, after a file saved under a hidden name has taken its place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{token_hex(4)}-{path.name}")
    try:
        save(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)  # what could not be written to its end is of no use
    return path


def onto_disk(path: Path) -> None:
    """Returns when a file's content, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
