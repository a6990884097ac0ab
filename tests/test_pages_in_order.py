"""A newcomer types what README and the guide say, in their order, in a fresh folder.

What one page has said already is not typed again for another: the folder still has what it left.
Else only what makes it long is shortened: seconds, the grids of studies, and the number of brokers
in full meshes, whose brokers tell each other of 190 links in each run. Commands of Spark run in
the session of the tests, which spares a start of Java for each; that they run as programs too has
tests elsewhere.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.broker_programs import BrokerProgram
from support.children import start
from support.pages import ROOT, commands, toml_blocks
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.live.config import BrokerConfig

pytestmark = pytest.mark.xdist_group("spark")

SECONDS = 3
WITHIN_S = 280.0
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
OF_SPARK = ("sweep", "study", "analyse", "watch", "learn")
GUIDE = ROOT / "docs" / "guide"
# What other tests run, or nobody would wait for.
CLIENTS = ("tidings pub", "tidings sub")
WITH_MORE_THAN_A_CLONE = ("--master", "--url", "rtt.parquet", "my-study.toml")
HOURS = "tidings study run dcrd-fig2"
LEFT_OUT = (*CLIENTS, *WITH_MORE_THAN_A_CLONE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What a clone has, as far as these commands read it; studies are short, on one topology."""
    for name in ("scenarios", "studies"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for study in (tmp_path / "studies").glob("*.toml"):
        text = study.read_text().replace("[600]", f"[{SECONDS}]")
        study.write_text(re.sub(r"count = \d+", "count = 1", text))
    for mesh in (tmp_path / "scenarios" / "dcrd.toml", tmp_path / "scenarios" / "mesh20.toml"):
        text = mesh.read_text()
        assert "brokers = 20" in text
        mesh.write_text(text.replace("brokers = 20", "brokers = 10"))
    config = toml_blocks(GUIDE / "run-a-broker.md")[0]
    for name in ("broker.toml", "delft.toml"):
        (tmp_path / name).write_text(config)
    return tmp_path


def run(command: str, place: Path) -> subprocess.Popen[Any]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-c", f"exec {command}"]
    return start(shell, cwd=place, env={**os.environ, "PATH": path}, text=True, **PIPES)


def brief(command: str) -> str:
    """The same, so short that a test can wait for it, and at any free port."""
    command = re.sub(r"--seconds \d+", f"--seconds {SECONDS}", command)
    command = re.sub(r"(study run) ([\w-]+) --quick", r"\1 studies/\2.toml --quick", command)
    if command.startswith("tidings simulate"):
        command += f" --set run.seconds={SECONDS}"
    if command.startswith("tidings up"):
        command += " --set live.mqtt_port=0"
    if command.startswith("tidings watch") and "--once" not in command:
        command += " --once"
    if command.startswith("tidings broker") and "--check" not in command:
        command += " --check"
    return command


def typed(
    said: Iterable[str], before: set[str], copy: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Runs those of Tidings' commands that were not run before, and gives the names of all."""
    monkeypatch.chdir(copy)
    done = []
    for command in said:
        elsewhere = command == HOURS or any(word in command for word in LEFT_OUT)
        if elsewhere or not command.startswith("tidings "):
            continue
        if command in before:
            done.append(shlex.split(command)[1])
            continue
        before.add(command)
        words = shlex.split(brief(command))
        if words[1] in OF_SPARK:
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception}"
        else:
            process = run(brief(command), copy)
            answer, complaints = process.communicate(timeout=WITHIN_S)
            assert process.returncode == 0, f"{command}\n{answer}\n{complaints}"
        done.append(words[1])
    return done


# What is typed on each page, in the order in which a newcomer reads them.
PAGES = {
    ROOT / "README.md": "up simulate sweep study analyse watch learn broker",
    GUIDE / "pipeline.md": "up analyse learn simulate simulate sweep",
    GUIDE / "link-model.md": "learn simulate simulate",
    GUIDE / "watch.md": "watch watch",
    GUIDE / "studies.md": "study study",
    GUIDE / "run-a-broker.md": "broker broker",
}


@pytest.mark.timeout(900)
def test_what_the_pages_say_can_be_typed_in_their_order(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set[str]()
    for page, names in PAGES.items():
        assert typed(commands(page), before, copy, monkeypatch) == names.split(), page.name


def test_every_page_with_commands_is_read() -> None:
    """Other pages need a cluster, or are typed by tests of their own."""
    others = {"add-a-strategy.md", "cluster.md", "spark-client.md"}
    said = {page for page in GUIDE.glob("*.md") if any("tidings " in c for c in commands(page))}
    assert {page.name for page in said - PAGES.keys()} == others


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
