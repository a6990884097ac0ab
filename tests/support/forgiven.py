"""What was judged again and then held, for whoever reads the end of a run: what is forgiven more
and more often is a fault, or soon fails by chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.attempts import take_forgiven

PROPERTY = "forgiven"  # reports carry it from the workers to the process that writes the summary


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report = yield
    report.user_properties += [(PROPERTY, told) for told in take_forgiven()]
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    lines = [
        f"{report.nodeid}: {told}"
        for report in reports
        for name, told in getattr(report, "user_properties", ())
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.section("attempts that failed and were repeated")
        for line in sorted(lines):
            terminalreporter.line(line)
