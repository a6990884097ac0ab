"""`tidings simulate --weather`: what is set on the command line goes before the model."""

import json
from pathlib import Path
from typing import Any

from support.link_models import a_link, a_model_file
from support.sweeps import TINY_SCENARIO
from typer.testing import CliRunner

from tidings.cli.main import app


def simulated(scenario: Path, weather: Path, *settings: str) -> dict[str, Any]:
    settings = ("broker.exhausted=drop", *settings)  # else all arrives in the end
    options = [part for setting in settings for part in ("--set", setting)]
    command = ["simulate", str(scenario), "--weather", str(weather), *options, "--json"]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    report: dict[str, Any] = json.loads(run.stdout)
    return report


def test_failures_that_are_set_happen_on_links_of_a_model_too(tmp_path: Path) -> None:
    hosts = [f"h{number}" for number in range(8)]
    links = [a_link(a, b) for a in hosts for b in hosts if a < b]
    weather, scenario = a_model_file(tmp_path / "m.parquet", *links), tmp_path / "tiny.toml"
    scenario.write_text(TINY_SCENARIO)
    runs = [
        simulated(scenario, weather, *settings)
        for settings in (
            (),
            ("links.failure_probability=0.06",),
            ("links.failure_probability=0.5",),
        )
    ]
    assert len({run["digest"] for run in runs}) == 3
    assert runs[2]["delivery_ratio"] < runs[1]["delivery_ratio"] < 1.0
    assert "as set explicitly: links.failure_probability" in runs[1]["links"]
    assert "explicitly" not in runs[0]["links"]
