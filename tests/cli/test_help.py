"""Help reads well in 80 columns, and what it shows can be copied."""

import re
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.live.config import load

COMMANDS = (
    *("up", "pub", "sub", "simulate", "sweep", "analyse", "compact", "watch", "learn", "broker"),
    "study",
)
WIDTH = 80


def help_of(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--help"], terminal_width=WIDTH)
    assert result.exit_code == 0
    return result.stdout


def test_every_command_is_listed_on_one_whole_line() -> None:
    lines = help_of().partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


@pytest.mark.parametrize("command", [*COMMANDS, "study list", "study run"])
def test_paragraphs_of_help_are_filled(command: str) -> None:
    """A line that is much too short, with the paragraph going on below it, was broken twice."""
    text = help_of(*command.split())
    assert max(map(len, text.splitlines())) <= WIDTH
    prose = re.split(r"^(?:Arguments|Options):", text.partition("\n\n")[2], flags=re.MULTILINE)[0]
    for paragraph in prose.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if not line.startswith("    ")]
        if len(lines) != len(paragraph.splitlines()):
            continue  # a block with its own lines
        for line, below in pairwise(lines):
            assert len(line) + 1 + len(below.split()[0]) > WIDTH - 2, line


@pytest.mark.parametrize("command", [*COMMANDS, "study list", "study run"])
def test_no_type_of_python_stands_for_what_a_person_types(command: str) -> None:
    assert "list[" not in help_of(*command.split())


def test_defaults_in_brackets_are_shown() -> None:
    assert "[default: results/<name>]" in help_of("sweep")


def test_the_file_in_the_help_of_broker_can_be_copied(tmp_path: Path) -> None:
    shown = help_of("broker").partition("[[neighbour]]:\n")[2].partition("\n\n")[0]
    file = tmp_path / "broker.toml"
    file.write_text(textwrap.dedent(shown))
    (neighbour,) = load(file).neighbour
    assert (neighbour.name, neighbour.port) == ("n2", 7001)
