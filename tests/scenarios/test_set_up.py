"""A scenario is set up once, however often what it came to is asked for."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from support.scenarios import a_scenario
from support.sweeps import a_spec
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.pipeline.sweep import grid
from tidings.scenarios import set_up as setting_up
from tidings.scenarios.set_up import set_up


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts how often an overlay is built."""
    counting = Mock(side_effect=setting_up.build)
    monkeypatch.setattr(setting_up, "build", counting)
    return counting


def test_what_a_setup_has_is_made_once(builds: Mock) -> None:
    setup = set_up(a_scenario())
    assert setup.outages is setup.outages
    assert setup.load is setup.load
    assert setup.conditions is setup.conditions
    assert setup.digest == setup.digest
    assert set(setup.estimates("b1")) == set(setup.overlay.neighbours("b1"))
    assert builds.call_count == 1


def test_a_simulation_builds_its_overlay_once(tmp_path: Path, builds: Mock) -> None:
    a_spec(tmp_path)
    done = CliRunner().invoke(app, ["simulate", str(tmp_path / "tiny.toml"), "--json", "--quiet"])
    assert done.exit_code == 0, done.output
    assert builds.call_count == 1


def test_a_sweep_reads_its_scenario_once_and_builds_one_overlay_for_each_point(
    tmp_path: Path, builds: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = grid.read_spec(a_spec(tmp_path))
    reads = Mock(side_effect=grid.read_toml)
    monkeypatch.setattr(grid, "read_toml", reads)
    points = grid.points_of(spec)
    assert len(points) > 1
    assert reads.call_count == 1
    assert builds.call_count == 1 + len(points)  # the scenario as it stands in its file, too
