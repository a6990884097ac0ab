"""What lies in the folder of a log? Segments, named by their first offset, and a lock."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from tidings.live.logs.records import FIRST_LINE_BYTES, LogError, log_id_in
from tidings.live.logs.segments import LogSegment, Marks

DIGITS = 20  # of an offset in the name of a file, so that names sort as numbers do
LOOK_EVERY_S = 0.05  # for a lock that is held


def segment_path(folder: Path, first: int) -> Path:
    return folder / f"{first:0{DIGITS}}.log"


def segments_in(folder: Path) -> list[LogSegment]:
    """The files of a log, oldest first; where each ends is not known yet."""
    segments = []
    for path in sorted(folder.glob(f"{'[0-9]' * DIGITS}.log")):
        first, seen = int(path.stem), path.stat()
        at = seen.st_mtime
        segments.append(LogSegment(path, first, first, seen.st_size, at, at, Marks(first)))
    return segments


def id_of(path: Path) -> str:
    """The id of the log whose segment this file is; raises if it is none."""
    with path.open("rb") as file:
        found = log_id_in(file.read(FIRST_LINE_BYTES))
    if found is None:
        raise LogError(f"{path} is not a log of this version of Tidings")
    return found


def locked(path: Path, within_s: float) -> int:
    """The lock file, held until it is closed, at the latest when this process ends."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    give_up_at = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                os.close(lock)
                raise LogError(f"{path.parent} is in use by another process") from None
            time.sleep(LOOK_EVERY_S)
