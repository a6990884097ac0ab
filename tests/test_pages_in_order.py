"""A newcomer types what README and the pipeline's page say, in their order, in a fresh copy.

Only what makes it long is shortened: seconds, and the grids of the studies in the copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.children import start
from support.live import free_ports
from support.pages import ROOT, commands

pytestmark = pytest.mark.xdist_group("spark")

SECONDS = 3
WITHIN_S = 280.0
PLACES = ("tidings learn rtt.parquet", "spark://host")  # what a reader has, and we do not
COPIED = ("scenarios", "studies", "docs")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What a clone has, as far as commands read it."""
    for folder in COPIED:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for study in ("mesh20", "dcrd-fig2"):
        file = tmp_path / "studies" / f"{study}.toml"
        text = file.read_text().replace("[600]", "[2]").replace("count = 3", "count = 1")
        file.write_text(re.sub(r"(failure_probability.*?= )\[.*\]", r"\1[0.0, 0.06]", text))
    shutil.copy(ROOT / "README.md", tmp_path)
    ping = {"slice": [1, 2], "source": [0, 0], "target": [1, 1], "rtt_ms": [3.0, 4.0]}
    pq.write_table(pa.table(ping), tmp_path / "rtt.parquet")
    return tmp_path


def run(command: str, place: Path) -> subprocess.Popen[Any]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-c", f"exec {command}"]
    return start(shell, cwd=place, env={**os.environ, "PATH": path}, text=True, **PIPES)


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def brief(command: str) -> str:
    """The same, so short that a test can wait for it."""
    return re.sub(r"--seconds \d+", f"--seconds {SECONDS}", command)


def typed(page: Path, copy: Path, port: int) -> list[str]:
    """Runs the commands of a page one after the other; those that were run."""
    done = []
    for command in commands(page):
        if not command.startswith("tidings") or any(place in command for place in PLACES):
            continue
        command = brief(command)
        if command.startswith("tidings up"):
            command += f" --set live.mqtt_port={port}"
        process = run(command, copy)
        said, complaints = process.communicate(timeout=WITHIN_S)
        assert process.returncode == 0, f"{command}\n{said}\n{complaints}"
        done.append(command.split()[1])
    return done
