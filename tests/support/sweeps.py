"""Small sweeps on disk, and a way to run them as a person would."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from support.brief_spark import BRIEFLY, as_options
from support.children import start

TINY_SCENARIO = """
[run]
seconds = 3
start_s = 1
drain_s = 1

[topology]
kind = "full-mesh"
brokers = 4

[links]
failure_probability = 0.2

[broker]
estimates = "pinned"

[workload]
topics = 2
rate_per_s = 10
subscribe_probability = [1.0, 1.0]
"""

TINY_MAP = """
graph [
  node [ id 0 label "Kyoto" Latitude 35.0 Longitude 135.8 ]
  node [ id 1 label "Nara" Latitude 34.7 Longitude 135.8 ]
  node [ id 2 label "Osaka" Latitude 34.7 Longitude 135.5 ]
  edge [ source 0 target 1 ]
  edge [ source 1 target 2 ]
  edge [ source 2 target 0 ]
]
"""

TINY_GRID = """
"broker.strategy" = ["d-tree", "r-tree"]
"run.seed" = { from = 1, count = 2 }
"""


def a_spec(folder: Path, grid: str = TINY_GRID, scenario: str = TINY_SCENARIO) -> Path:
    """A spec and its scenario in a folder of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.toml").write_text(scenario)
    spec = folder / "spec.toml"
    spec.write_text(f'name = "tiny"\nscenario = "tiny.toml"\n[grid]\n{grid}')
    return spec


def start_sweep(spec: Path, out: Path, *options: str, **how: Any) -> subprocess.Popen[str]:
    """`tidings sweep` in a process of its own; `how` are arguments of `Popen`."""
    command = [sys.executable, "-m", "tidings", "sweep", spec, "--out", out, "--master", "local[2]"]
    pipe = subprocess.PIPE
    options = (*options, *as_options(BRIEFLY))
    return start([*command, *options], stdout=pipe, stderr=pipe, text=True, **how)


def point_files(out: Path) -> list[Path]:
    return sorted(out.glob("points/study=tiny/strategy=*/*.parquet"))
