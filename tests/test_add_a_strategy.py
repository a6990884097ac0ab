"""The guide's example, followed to the letter, in both worlds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, package_with

PAGE = ROOT / "docs" / "guide" / "add-a-strategy.md"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package_with(PAGE, tmp_path_factory.mktemp("followed"), "routing/second_chance.py")


def tidings(package: Path, *arguments: str) -> dict:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-m", "tidings", *arguments, "--json"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_new_strategy_beats_direct_in_the_simulator_on_the_same_failures(package: Path) -> None:
    scenario = str(ROOT / "scenarios" / "mesh20.toml")
    options = ("--set", "run.seconds=60")
    direct = tidings(package, "simulate", scenario, "--strategy", "direct", *options)
    ours = tidings(package, "simulate", scenario, "--strategy", "second-chance", *options)
    assert ours["expected"] == direct["expected"]
    assert direct["delivery_ratio"] < 0.96
    assert ours["delivery_ratio"] > 0.98


@pytest.mark.timing
def test_the_new_strategy_runs_in_live_brokers(package: Path, tmp_path: Path) -> None:
    scenario = str(ROOT / "scenarios" / "harmony.toml")
    options = ("--seconds", "3", "--traces", str(tmp_path / "traces"))
    result = tidings(package, "up", scenario, "--strategy", "second-chance", *options)
    assert result["expected"] > 100
    assert result["delivery_ratio"] > 0.99
