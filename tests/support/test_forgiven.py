"""Who reads the end of a run learns which attempts were forgiven."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.attempts import in_real_time, take_forgiven

TESTS = Path(__file__).parent.parent

TRIED = """
import pytest
from support.attempts import in_real_time

def at_least(least):
    def judge(attempt):
        assert attempt >= least, "too few"
    return judge

def test_at_once():
    in_real_time(lambda attempt: attempt, at_least(1))

def test_soon():
    in_real_time(lambda attempt: attempt, at_least(3))

@pytest.fixture
def never():
    in_real_time(lambda attempt: attempt, at_least(6))

def test_never(never):
    pass
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_the_summary_names_test_attempt_and_what_failed(workers: str, tmp_path: Path) -> None:
    (tmp_path / "test_tried.py").write_text(TRIED)
    options = ("-q", "-p", "support.forgiven", "-p", "no:cacheprovider", "-n", workers)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_tried.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "2 passed, 1 error" in done.stdout, done.stdout + done.stderr
    _, title, told = done.stdout.partition("attempts that failed and were repeated")
    assert title
    never, soon = (f"test_tried.py::test_{name}: attempt" for name in ("never", "soon"))
    assert told.splitlines()[1:7] == [
        *(f"{never} {n} of 5: too few: assert {n} >= 6" for n in range(1, 5)),
        *(f"{soon} {n} of 5: too few: assert {n} >= 3" for n in range(1, 3)),
    ]
    assert "test_at_once" not in told


def test_an_assert_without_words_is_told_itself() -> None:
    def judge(attempt: int) -> None:
        if attempt < 2:
            raise AssertionError

    in_real_time(lambda attempt: attempt, judge)
    assert take_forgiven() == ["attempt 1 of 5: raise AssertionError"]
