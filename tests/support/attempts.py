"""How is a promise about real time tested on a machine that is not ours alone? In several attempts.

A pause of the machine falls on one run or another; a fault of the code falls on them all. Only what
a pause can spoil is judged again: what must hold of every run is asserted while it is observed.
What was forgiven is told at the end of the run, see `support.forgiven`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ATTEMPTS = 5

_forgiven: list[str] = []


def in_real_time(observe: Callable[[int], T], judge: Callable[[T], None]) -> T:
    """The first observation that stands up to `judge`; if none does, what the last one failed by.

    `observe` is given the number of the attempt. What it asserts itself is never forgiven.
    """
    for attempt in range(1, ATTEMPTS):
        seen = observe(attempt)
        try:
            judge(seen)
        except AssertionError as failure:
            _forgiven.append(f"attempt {attempt} of {ATTEMPTS}: {_first_line(failure)}")
            continue
        return seen
    seen = observe(ATTEMPTS)
    judge(seen)
    return seen


def take_forgiven() -> list[str]:
    """The attempts that failed since somebody asked last, each in one line."""
    taken = _forgiven.copy()
    _forgiven.clear()
    return taken


def _first_line(failure: AssertionError) -> str:
    """What it says first, and what was compared; if it says nothing, the line that failed."""
    lines = str(failure).splitlines()
    if not lines:
        return str(traceback.extract_tb(failure.__traceback__)[-1].line)
    compared = [line for line in lines[1:2] if line.startswith("assert ")]
    return ": ".join(lines[:1] + compared)
