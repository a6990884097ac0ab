"""A `tidings` command inside this process: for the many that only say something and end.

Starting a program takes longer than most commands do, and Spark's commands import for seconds. At
least one test of each command starts the real program, and so do all that are about signals,
streams or processes.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from tidings.cli.main import main


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    said: str  # on standard error


def tidings_here(*arguments: object) -> Ended:
    out, said = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["tidings", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(said),
    ):
        try:
            main()
            code: object = 0
        except SystemExit as ending:
            code = ending.code or 0
    assert isinstance(code, int)
    return Ended(code, out.getvalue(), said.getvalue())
