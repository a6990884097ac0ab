"""A strategy that only a simulator can run is refused wherever a live broker could hear of it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.statements import refusals
from support.sweeps import TINY_SCENARIO

from tidings.broker.settings import Settings
from tidings.core.errors import ConfigError
from tidings.live.config import BrokerConfig, parse

ACCEPTED = (
    "one of balanced, best-path, d-tree, dcrd, direct, flooding, multipath, "
    "qos-multipath, qos-path, r-tree."
)
ORACLE = (
    f"{ACCEPTED.removesuffix('.')}; oracle runs in the simulator only (`tidings simulate`), as it "
    "must know what is going to fail."
)


@pytest.mark.parametrize("strategy", ["oracle", "guess"])
@pytest.mark.parametrize("place", ["broker", "policy"])
def test_a_file_cannot_ask_for_it(place: str, strategy: str) -> None:
    asked = {"strategy": strategy}
    tables: dict[str, Any] = {"broker": asked, "policy": [{"topic": "a"} | asked]}
    with pytest.raises(ConfigError) as caught:
        parse({"name": "n1", place: tables[place]}, "n1.toml")
    accepted = ORACLE if strategy == "oracle" else ACCEPTED
    named = f"n1.toml: {place}.strategy is {strategy!r}, but accepted is: {accepted}"
    assert str(caught.value) == named


def test_a_configuration_made_by_a_program_cannot_either() -> None:
    with pytest.raises(ConfigError, match=r"^n1: broker.strategy is 'oracle'"):
        BrokerConfig(name="n1", broker=Settings(strategy="oracle"))


@pytest.mark.parametrize("strategy", ["oracle", "guess"])
def test_a_client_cannot_state_it(strategy: str) -> None:
    named = f"user property strategy is {strategy!r}, but accepted is: {ACCEPTED}"
    for refusal in refusals((("strategy", strategy),)):
        assert str(refusal) == named


def test_a_live_overlay_cannot_be_brought_up_with_it(tmp_path: Path) -> None:
    scenario = tmp_path / "tiny.toml"
    scenario.write_text(TINY_SCENARIO)
    options = ("--strategy", "oracle", "--traces", str(tmp_path / "traces"))
    command = [sys.executable, "-m", "tidings", "up", str(scenario), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    named = "tidings: --strategy: broker.strategy is 'oracle', but accepted is:"
    assert done.stderr == f"{named} {ORACLE}\n"
