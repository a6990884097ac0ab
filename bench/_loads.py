"""Loads on brokers that run, each from a process of its own, and what came of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from _chains import Chain
from _processes import cpu_s

PAYLOAD_BYTES = 100
WINDOW = 4_000  # messages that a publisher may be ahead of the slowest subscriber
FOLDER = Path(__file__).parent
LOAD, FAN_OUT_LOAD = FOLDER / "_overlay_load.py", FOLDER / "_fan_out_load.py"


def loaded(chain: Chain, messages: int, rate_per_s: int = 0, window: int = 0) -> dict:
    """One publisher, one subscriber: rate, delays, and the busiest broker's work per message."""
    return _costed(chain, messages, LOAD, *chain[:3], messages, PAYLOAD_BYTES, rate_per_s, window)


def fanned_out(chain: Chain, fan_out: int, messages: int) -> dict:
    """So many subscribers at one broker: the rate, and the broker's work per delivery."""
    load = (chain.language, chain.near, fan_out, messages, PAYLOAD_BYTES, WINDOW)
    return _costed(chain, messages * fan_out, FAN_OUT_LOAD, *load)


def _costed(chain: Chain, messages: int, load: Path, *arguments: object) -> dict:
    before = [cpu_s(process) for process in chain.processes]
    command = [sys.executable, str(load), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=300)
    spent = [cpu_s(process) - was for process, was in zip(chain.processes, before, strict=True)]
    return {**json.loads(done.stdout), "cpu_us": max(spent) / messages * 1e6}


def medians(rounds: list[dict[str, dict]]) -> dict[str, dict]:
    """Of each figure; but every message that was ever lost counts."""
    return {
        load: {
            figure: (sum if figure == "lost" else median)([each[load][figure] for each in rounds])
            for figure in rounds[0][load]
        }
        for load in rounds[0]
    }


def told(found: dict) -> str:
    return (
        f"{found['per_s']:,.0f}/s, {found['lost']:,} lost; 50 % {found['p50_ms']:.2f}, "
        f"99 % {found['p99_ms']:.2f}, 99.9 % {found['p999_ms']:.2f} ms; "
        f"{found['cpu_us']:.0f} us of the busiest"
    )
