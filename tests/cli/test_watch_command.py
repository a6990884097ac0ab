"""What a person gets wrong with `tidings watch` is told before Spark starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.core.errors import ConfigError


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


def test_a_file_is_no_folder_of_traces(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    run = CliRunner().invoke(app, ["watch", str(file)])
    assert isinstance(run.exception, ConfigError)
    assert str(file) in str(run.exception)
