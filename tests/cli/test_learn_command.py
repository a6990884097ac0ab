"""`tidings learn` on a table, and a simulation on what it learned."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.sweeps import TINY_SCENARIO
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.core.errors import ConfigError

pytestmark = pytest.mark.xdist_group("spark")

HOSTS, SLICES = 6, 40


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round trip for each pair and slice."""
    drawn = np.random.default_rng(3)
    cells = [(s, a, b) for s in range(SLICES) for a in range(HOSTS) for b in range(HOSTS) if a != b]
    slices, source, target = map(list, zip(*cells, strict=True))
    rtt_ms = 40.0 + drawn.gamma(2.0, 10.0, len(cells))
    path = tmp_path_factory.mktemp("learn") / "rtt.parquet"
    columns = {"slice": slices, "source": source, "target": target, "rtt_ms": rtt_ms}
    pq.write_table(pa.table(columns), path)
    return path


def test_a_model_is_learned_and_simulated(table: Path, tmp_path: Path) -> None:
    out, scenario = tmp_path / "weather.parquet", tmp_path / "tiny.toml"
    scenario.write_text(TINY_SCENARIO)
    run = CliRunner().invoke(app, ["learn", str(table), "--out", str(out), "--json"])
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    assert (report["links"], report["samples"]) == (30, 1200)
    assert report["unknown"]["transfer"] == {"a table of round trips has no sizes": 30}
    errors = {(row["horizon"], row["predictor"]): row["rmse_ms"] for row in report["prediction"]}
    assert errors[1, "model: expected"] < errors[1, "last value"]
    run = CliRunner().invoke(app, ["simulate", str(scenario), "--weather", str(out), "--json"])
    assert run.exit_code == 0, run.output
    assert "in order" in json.loads(run.stdout)["links"]


def test_mistakes_are_told_before_spark_starts(table: Path, tmp_path: Path) -> None:
    master = ["--master", "no-such-master"]
    run = CliRunner().invoke(app, ["learn", str(tmp_path), "--out", "w.parquet", *master])
    assert isinstance(run.exception, ConfigError)
    out = str(table / "w.parquet")
    run = CliRunner().invoke(app, ["learn", str(table), "--out", out, *master])
    assert isinstance(run.exception, ConfigError)
    assert "--out" in str(run.exception)
    run = CliRunner().invoke(app, ["learn", str(table), "--out", str(tmp_path), *master])
    assert "a file, such as weather.parquet" in str(run.exception)
    wrong = ["--out", "w.parquet", "--conf", "executor.memory=2g"]
    run = CliRunner().invoke(app, ["learn", str(table), *wrong, *master])
    assert "--conf" in str(run.exception)
