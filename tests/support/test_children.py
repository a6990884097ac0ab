"""Children of tests hear Ctrl-C and do not outlive them, whoever started the tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.children import end_all, start

WAITS = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
WITHIN_S = 60.0

LEAVES = f"""
import os, pytest
from support.children import start

def test_fails():
    os.environ["CHILD"] = str(start({WAITS!r}).pid)
    assert False

def test_looks():
    with pytest.raises(ProcessLookupError):
        os.kill(int(os.environ["CHILD"]), 0)
"""


@pytest.fixture
def _ignored() -> Iterator[None]:
    """As in `nohup make test &` of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def waiting() -> subprocess.Popen[bytes]:
    """A child, when Python has put its handlers in place."""
    child = start(WAITS, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"\n"
    return child


@pytest.mark.usefixtures("_ignored")
def test_a_child_hears_an_interrupt_that_its_parent_ignores() -> None:
    child = waiting()
    child.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in child.communicate(timeout=WITHIN_S)[1]
    assert child.returncode == -signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_children_that_are_left_are_killed_waited_for_and_their_pipes_closed() -> None:
    left = [waiting() for _ in range(2)]
    left[0].send_signal(signal.SIGSTOP)
    end_all()
    assert [child.returncode for child in left] == [-signal.SIGKILL] * 2
    assert all(child.stdout.closed for child in left if child.stdout)


def test_a_test_that_fails_leaves_no_child(tmp_path: Path) -> None:
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    options = ("-q", "-p", "support.children", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_leaves.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
