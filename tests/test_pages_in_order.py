"""A newcomer types what README and the pipeline's page say, in their order, in a fresh folder.

Only what makes it long is shortened.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.broker_programs import BrokerProgram
from support.children import start
from support.pages import ROOT, commands

from tidings.live.config import BrokerConfig

pytestmark = pytest.mark.xdist_group("spark")

SECONDS = 3
WITHIN_S = 280.0
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What a clone has, as far as these commands read it."""
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    return tmp_path


def run(command: str, place: Path) -> subprocess.Popen[Any]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-c", f"exec {command}"]
    return start(shell, cwd=place, env={**os.environ, "PATH": path}, text=True, **PIPES)


def brief(command: str) -> str:
    """The same, so short that a test can wait for it, and at any free port."""
    command = re.sub(r"--seconds \d+", f"--seconds {SECONDS}", command)
    if command.startswith("tidings simulate"):
        command += f" --set run.seconds={SECONDS}"
    if command.startswith("tidings up"):
        command += " --set live.mqtt_port=0"
    return command


def typed(page: Path, copy: Path, *wanted: str) -> list[str]:
    """Runs the commands of a page with these names one after the other, and gives the names."""
    done = []
    for command in commands(page):
        name = " ".join(command.split()[:2])
        if name not in wanted or "rtt.parquet" in command:
            continue
        process = run(brief(command), copy)
        said, complaints = process.communicate(timeout=WITHIN_S)
        assert process.returncode == 0, f"{command}\n{said}\n{complaints}"
        done.append(name)
    return done


@pytest.mark.timeout(900)
def test_traces_of_an_overlay_are_learned_from_and_simulated_as_the_pages_say(copy: Path) -> None:
    """Those commands that need what others left; the others have tests of their own."""
    chain = ("tidings up", "tidings simulate", "tidings learn")
    listed = copy / "list.md"
    listed.write_text((ROOT / "README.md").read_text().partition("## What you can do")[2])
    assert typed(listed, copy, *chain) == list(chain)
    pipeline = ROOT / "docs" / "guide" / "pipeline.md"
    assert typed(pipeline, copy, "tidings simulate") == 2 * ["tidings simulate"]


@pytest.mark.parametrize("client", ["tidings ", "mosquitto_"])
def test_what_readme_says_of_clients_is_so(client: str, copy: Path) -> None:
    if client == "mosquitto_" and not shutil.which("mosquitto_sub"):
        pytest.skip("Mosquitto's clients are not installed")
    config = BrokerConfig(name="n1", mqtt_port=0, traces=str(copy / "traces"))
    broker = BrokerProgram(config, copy)
    broker.start()
    port = str(broker.ready()["mqtt_port"])
    said = [re.sub(r"\b1883[15]\b", port, line) for line in commands(ROOT / "README.md")]
    [publish] = [line for line in said if line.startswith(f"{client}pub")]
    subscriptions = [line for line in said if line.startswith(f"{client}sub")]
    assert subscriptions
    for line in subscriptions:
        enough = f"--count 1 -p {port}" if client == "tidings " else "-C 1"
        subscriber = run(f"{line.removesuffix('&')} {enough}", copy)
        while subscriber.poll() is None:  # QoS 0 keeps nothing for a subscriber that is late
            publisher = run(publish, copy)
            assert publisher.wait(timeout=WITHIN_S) == 0
        assert subscriber.communicate() == ('{"level": 4}\n', "")
