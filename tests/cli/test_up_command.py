"""The result of a live run is that of its own rows, whatever earlier runs have left."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.traces import BY_HAND, tables_of, write_tables
from typer.testing import CliRunner, Result

from tidings import CODE
from tidings.cli import up as command
from tidings.cli.main import app
from tidings.cli.screens.code import code_here
from tidings.cli.screens.up import Outcome
from tidings.live.clock import wall_clock
from tidings.testbed.plan import Plan
from tidings.testbed.traffic import Traffic
from tidings.traces import live_files
from tidings.traces.live_files import TraceFiles, renamed

SCENARIO = """
[run]
name = "small"
seconds = 1.0
[topology]
kind = "full-mesh"
brokers = 3
[live]
mqtt_port = 0
[workload]
topics = 1
"""


@pytest.fixture
def run_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`tidings up` with brokers that have recorded what was computed by hand."""

    async def recorded(planned: Plan, *_: object) -> Outcome:
        trace = TraceFiles(planned.traces, planned.run, "b1")
        for row in BY_HAND:
            trace.rows[type(row)].append(row)
        trace.close()
        return Outcome(Traffic(wall_clock()), 0)

    monkeypatch.setattr(command, "_run", recorded)
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    arguments = ["up", str(scenario), "--traces", str(tmp_path / "traces")]
    return lambda *more: CliRunner().invoke(app, [*arguments, *more], catch_exceptions=False)


def test_files_of_earlier_runs_do_not_cost_the_result(
    tmp_path: Path, run_up: Callable[..., Result]
) -> None:
    old = write_tables(tmp_path / "traces", tables_of({"old": BY_HAND}), "old-b1-000000")
    file = old / "carried" / "old-b1-000000.parquet"
    pq.write_table(pq.read_table(file).replace_schema_metadata({"tidings": "9"}), file)
    (old / "published" / "old-b1-000001.parquet").write_bytes(b"cut off by a crash")
    result = run_up("--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["publications"], found["expected"], found["delivered"]) == (4, 7, 5)


def test_a_bad_file_of_this_run_is_named_and_the_result_is_printed(
    run_up: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(draft: Path, final: Path) -> bool:
        if final.parent.name == "dropped":
            draft.write_bytes(draft.read_bytes()[:-20])
        return renamed(draft, final)

    monkeypatch.setattr(live_files, "renamed", cut)
    result = run_up("--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["delivered"] == 5
    (said,) = result.stderr.splitlines()
    assert "dropped" in said
    assert said.endswith("So the result is not whole.")


def test_the_first_line_says_which_code_runs(run_up: Callable[..., Result]) -> None:
    assert run_up().stdout.splitlines()[0] == code_here()
    assert code_here() not in run_up("--quiet").stdout
    assert json.loads(run_up("--json").stdout)["code"] == CODE
