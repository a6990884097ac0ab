"""Which worker of pytest runs which tests? A file at a time, and all of Spark in the first worker.

The tests of a file share what is dear to make, so a file stays whole. A Spark session is dearer
still: its JVM is quick only after a minute of work, and larger than all other workers together.
There are more workers than cores, as tests of processes wait for them most of their time; they
begin early, so that nobody waits for the last of them in the end. The first worker has the longest
way to go, so the others let it go first when there is not enough of the machine for all.

`--dist loadgroup` would take the groups of tests from their ids, where pytest 9.2 has none any
more: without a word, it then starts Spark in every worker.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# As they are written in the files: whoever distributes tests has only their ids.
SPARK = ('xdist_group("spark")',)
TIMING = "mark.timing"
PROCESSES = (
    "import subprocess",
    "support.broker_processes",
    "support.standalone",
    "support.triangle",
    "support.two_worlds",
)
FIRST = "gw0"
NICENESS = 5  # of the others: a third of its share, where both could use a whole processor


class Lanes(LoadScopeScheduling):
    """A worker takes the next file for it; the first one helps the others when Spark's are done."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if (file := self._next(node)) is not None:
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if self._next(node) is None:
            node.shutdown()  # as soon as it has run what it was given
        else:
            super()._reschedule(node)

    def _next(self, node: WorkerController) -> str | None:
        """The file that a worker should take, if there is one for it."""
        of_spark = [file for file in self.workqueue if self._has(file, SPARK)]
        if of_spark and self._is_first(node):
            return of_spark[0]
        others = [file for file in self.workqueue if file not in of_spark]
        waiting = [file for file in others if self._has(file, PROCESSES)]
        return next(iter(waiting + others), None)

    def _is_first(self, node: WorkerController) -> bool:
        """Of those that still work: another one takes over when a worker has died."""
        working = [each.gateway.id for each in self.nodes if not each.shutting_down]
        return node.gateway.id == min(working, default=None)

    def _has(self, file: str, words: tuple[str, ...]) -> bool:
        return _has(self.config.rootpath / file, words)


@cache  # asked of every file that is left, whenever a test has ended
def _has(path: Path, words: tuple[str, ...]) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(word in text for word in words)


def pytest_configure(config: Any) -> None:
    """In a worker; where real delays are compared, none is to wait for another."""
    worker = getattr(config, "workerinput", {"workerid": FIRST})["workerid"]
    if worker != FIRST and config.option.markexpr != "timing":
        os.nice(NICENESS)


@pytest.hookimpl(optionalhook=True)  # not asked for where xdist is switched off
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Lanes | None:
    return Lanes(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests that compare real delays run by themselves, with `-m timing`. They are in a few files,
    and importing all others takes each worker as long as ten seconds."""
    if config.option.markexpr != "timing" or collection_path.suffix != ".py":
        return None
    return not _has(collection_path, (TIMING,)) or None
