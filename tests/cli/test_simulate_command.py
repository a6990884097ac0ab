"""What `tidings simulate` prints of a run."""

import json
from pathlib import Path

import pytest
from support.sweeps import a_spec
from typer.testing import CliRunner

from tidings.cli.main import app


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_every_number_of_a_run_is_whole(width: int, tmp_path: Path) -> None:
    a_spec(tmp_path)
    run = ["simulate", str(tmp_path / "tiny.toml"), "--set", "run.name=a-rather-long-name"]
    found = json.loads(CliRunner().invoke(app, [*run, "--json"]).stdout)
    shown = CliRunner().invoke(app, run, env={"COLUMNS": str(width)}).stdout
    figures = [
        f"{found['publications']:,}",
        f"{found['expected']:,}",
        f"{found['delivery_ratio']:.4%}",
        f"{found['packets_per_subscriber']:.3f}",
        f"{found['delay_p50_s'] * 1000:.1f} ms",
        f"{found['delay_p99_s'] * 1000:.1f} ms",
        *(f"{count:,}" for count in found["dropped"].values()),
        found["digest"][:16],
    ]
    assert [figure for figure in figures if figure not in shown] == []
