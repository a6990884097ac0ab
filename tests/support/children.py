"""Processes that a test starts: they hear Ctrl-C, and none of them outlives the test.

Whoever is started in the background by a script ignores SIGINT, and so do its children and theirs:
a test that interrupts a child would wait for ever, if the child had inherited that from pytest.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

_started: list[subprocess.Popen[Any]] = []


def start(command: Sequence[object], **how: Any) -> subprocess.Popen[Any]:
    """A process that hears Ctrl-C, and ends with the test that runs now at the latest.

    `how` are the arguments of `Popen`. Not for fixtures that several tests share.
    """
    with hearing_interrupts():
        process = subprocess.Popen([str(word) for word in command], **how)
    _started.append(process)
    return process


@contextmanager
def hearing_interrupts() -> Iterator[None]:
    """Processes that are started meanwhile hear SIGINT: what is handled here is not ignored there.

    Nothing runs between fork and exec for it, as locks that other threads hold may be held there.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_all() -> None:
    while _started:
        with _started.pop() as process:  # closes its pipes and waits for it
            process.kill()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """After a test and its fixtures, whatever became of them."""
    try:
        return (yield)
    finally:
        end_all()
