"""What all benchmarks share: two options, lines with a ratio, a table for a person."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import tidings

Line = dict[str, Any]


def line(
    name: str,
    value: float,
    unit: str,
    baseline: float,
    ratio: float,
    target: float | None = None,
    met: bool | None = None,
    **more: Any,
) -> Line:
    """One measurement beside its baseline, taken in the same run; a target is of the ratio unless
    `met` says otherwise."""
    entry: Line = {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio}
    if target is not None:
        entry |= {"target": target, "met": ratio >= target if met is None else met}
    return entry | more


def run(
    name: str, description: str | None, measured: Callable[..., list[Line]], large: str = ""
) -> None:
    """Measure (quickly, if asked to) and print. `large` says what is measured beside the usual if
    that is asked for; then `measured` is told whether it is."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="shorter, and less precise")
    if large:
        parser.add_argument("--large", action="store_true", help=large)
    options = parser.parse_args()
    lines = measured(options.quick, options.large) if large else measured(options.quick)
    if options.json:
        print(json.dumps({"bench": name, "code": tidings.CODE, "lines": lines}))
    else:
        print(f"{table(lines)}\ncode: {tidings.CODE}")


def table(lines: Sequence[Line]) -> str:
    """The lines for a person."""
    rows = [f"{'':44}{'value':>14} {'unit':20}{'baseline':>14}{'ratio':>10}  target"]
    for entry in lines:
        verdict = ""
        if "met" in entry:
            verdict = f"{entry['target']:g} {'met' if entry['met'] else 'MISSED'}"
        rows.append(
            f"{entry['name']:44}{entry['value']:14,.1f} {entry['unit']:20}"
            f"{entry['baseline']:14,.1f}{entry['ratio']:10,.2f}  {verdict}"
        )
        rows += [f"    {text}" for text in entry.get("notes", ())]
    return "\n".join(rows)
