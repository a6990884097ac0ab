"""What a person gets wrong with `tidings watch` is told before Spark starts."""

from inspect import signature
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tidings.cli.analyse import analyse
from tidings.cli.compact import compact
from tidings.cli.main import app
from tidings.cli.screens.watch import TableScreen
from tidings.cli.watch import watch
from tidings.core.errors import ConfigError
from tidings.pipeline.analyse.job import WINDOW_S
from tidings.pipeline.transforms.windows import Timing, Window
from tidings.pipeline.watch.job import BATCH_ROWS, Status
from tidings.traces.compaction import SETTLE_S


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--window-s", "0"], "--window-s"),
        (["--watermark-s", "nan"], "--watermark-s"),
        (["--wait-s", "-1"], "--wait-s"),
        (["--target", "99"], "--target"),
        (["--url", "http://127.0.0.1"], "mqtt://HOST:PORT"),
        (["--once"], "a folder without traces"),
        (["--conf", "nonsense"], "--conf"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], named: str, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["watch", str(tmp_path), "--master", "no-such", *arguments])
    assert isinstance(run.exception, ConfigError)
    assert named in str(run.exception)


@pytest.mark.parametrize("on_a_terminal", [True, False])
@pytest.mark.parametrize("topic", ["a/[/b]", "a/[b]"])
def test_topics_may_have_brackets(topic: str, on_a_terminal: bool, tmp_path: Path) -> None:
    said = StringIO()
    console = Console(file=said, width=200, force_terminal=on_a_terminal, color_system=None)
    bad = Window("r", topic, 0.1, 0.0, 5.0, 10, 8, 8, 2, 0.2, 0.8, 0.05)
    with TableScreen(console, tmp_path / "[/traces]", 0.9) as screen:
        screen.show([bad])
        screen.report(Status())
    screen.end(Status(), tmp_path / "[/memory]")
    assert f"Violation: {topic} (100.0 ms)" in said.getvalue()
    last_table = said.getvalue().partition("The last windows")[2]
    assert f"{topic} " in last_table
    assert "[/memory]/windows" in last_table


def test_what_is_not_said_is_as_the_jobs_have_it() -> None:
    """Commands write their defaults out, as importing the jobs takes seconds."""

    def default(command: object, option: str) -> object:
        return signature(command).parameters[option].default

    for option in ("window_s", "watermark_s", "wait_s"):
        assert default(watch, option) == getattr(Timing(), option)
    assert default(watch, "batch_rows") == BATCH_ROWS
    assert default(compact, "settle_s") == SETTLE_S
    assert default(analyse, "window_s") == WINDOW_S


def test_a_file_is_no_folder_of_traces(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    run = CliRunner().invoke(app, ["watch", str(file)])
    assert isinstance(run.exception, ConfigError)
    assert str(file) in str(run.exception)
