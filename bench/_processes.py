"""What do this process and all that it has started (a JVM, Python workers) take of the machine?"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LOOK_EVERY_S = 0.5


class Peak:
    """The most memory that was found so far."""

    size_bytes = 0


def family_cpu_s() -> float:
    """Seconds of processors."""
    spent = _spent_ticks()
    return sum(spent[process] for process in _family()) / TICKS_PER_S


def cpu_s(process: int) -> float:
    """Seconds of processors that one other process has taken so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS_PER_S


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """How much memory the family had at most meanwhile; what processes share counts once."""
    peak, ended = Peak(), Event()

    def look() -> None:
        while not ended.wait(LOOK_EVERY_S):
            peak.size_bytes = max(peak.size_bytes, sum(map(_memory_bytes, _family())))

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def _family() -> set[int]:
    parents = {process: int(fields[1]) for process, fields in _statistics()}
    ours = {os.getpid()}
    while found := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= found
    return ours


def _spent_ticks() -> dict[int, int]:
    """Of those that have ended and were waited for, too."""
    return {process: sum(map(int, fields[11:15])) for process, fields in _statistics()}


def _statistics() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            yield int(entry.parent.name), entry.read_text().rpartition(")")[2].split()


def _memory_bytes(process: int) -> int:
    with suppress(OSError):
        found = re.search(r"^Pss: +([0-9]+) kB", _rollup(process), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    return 0


def _rollup(process: int) -> str:
    return Path(f"/proc/{process}/smaps_rollup").read_text()
