"""`tidings study`: from a TOML file to a judged figure, as a person runs it."""

import json
from pathlib import Path

import pytest
from support.studies import a_study_file
from typer.testing import CliRunner, Result

from tidings.cli.main import app

pytestmark = pytest.mark.xdist_group("spark")


def tidings(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def test_the_list_names_studies_and_what_to_do_next() -> None:
    said = tidings("list")
    assert said.exit_code == 0
    assert all(f"dcrd-fig{number} " in said.stdout for number in range(2, 9))
    assert all(
        f"bounded-{name} " in said.stdout for name in ("fig4", "fig5", "fig6", "both", "beyond")
    )
    assert "Next: tidings study run bounded-beyond --quick" in said.stdout
    listed = json.loads(tidings("list", "--json").stdout)["studies"]
    figure = next(study for study in listed if study["study"] == "dcrd-fig2")
    assert (figure["figure"], figure["section"]) == ("Figure 2", "IV.D.1")


def test_a_study_runs_resumes_and_is_read_by_scripts_and_people(tmp_path: Path) -> None:
    path, out = a_study_file(tmp_path), tmp_path / "out"
    run = ("run", path, "--quick", "--out", out, "--master", "local[2]")

    first = tidings(*run, "--json")
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)
    assert (found["study"], found["quick"], found["topologies"]) == ("trees", True, 2)
    keys = {"strategy", "x", "metric", "mean", "ci", "runs"}
    assert all(set(point) == keys and point["runs"] == 2 for point in found["points"])
    assert [(p["strategy"], p["x"]) for p in found["points"][:4]] == [
        ("d-tree", 0.0),
        ("d-tree", 0.4),
        ("r-tree", 0.0),
        ("r-tree", 0.4),
    ]
    assert {claim["id"]: claim["verdict"] for claim in found["claims"]} == {
        "all-without-failures": "holds",
        "all-with-failures": "does not hold",
        "in-between": "not judged",  # the quick run has no such x
    }
    assert json.loads((out / "trees-quick.json").read_text()) == found
    assert (out / "trees-quick.png").read_bytes()[:4] == b"\x89PNG"

    points = sorted(out.glob("points/study=trees-quick/*/*.parquet"))
    assert len(points) == 8
    kept = {point: point.stat().st_mtime_ns for point in points[1:]}
    points[0].unlink()
    second = tidings(*run, "--json")
    assert json.loads(second.stdout) == found
    assert points[0].exists()
    assert {point: point.stat().st_mtime_ns for point in kept} == kept

    shown = tidings(*run)
    assert shown.exit_code == 0, shown.output
    assert "delivered, %" in shown.stdout
    assert "does not hold" in shown.stdout
    assert "Trees never reroute." in " ".join(shown.stdout.split())
    assert "1 claims hold, 1 do not, 1 not judged" in shown.stdout
    assert f"Next, for hours: tidings study run {path}" in shown.stdout
