"""`tidings study`: from a TOML file to a judged figure, as a person runs it."""

import json
from pathlib import Path

import pytest
from support.studies import STUDY, a_study_file
from typer.testing import CliRunner, Result

from tidings import CODE
from tidings.cli.main import app

pytestmark = pytest.mark.xdist_group("spark")

PROJECT = Path(__file__).parents[2]


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
    assert found.pop("code") == {CODE: 8}
    assert json.loads((out / "trees-quick.json").read_text()) == found
    assert (out / "trees-quick.png").read_bytes()[:4] == b"\x89PNG"

    points = sorted(out.glob("points/study=trees-quick/*/*.parquet"))
    assert len(points) == 8
    kept = {point: point.stat().st_mtime_ns for point in points[1:]}
    points[0].unlink()
    second = tidings(*run, "--json")
    assert json.loads(second.stdout) == found | {"code": {CODE: 1}}
    assert points[0].exists()
    assert {point: point.stat().st_mtime_ns for point in kept} == kept

    shown = tidings(*run)
    assert shown.exit_code == 0, shown.output
    assert "delivered, %" in shown.stdout
    assert "does not hold" in shown.stdout
    assert "Trees never reroute." in " ".join(shown.stdout.split())
    assert "Claims that hold: 1, that do not: 1, not judged: 1." in shown.stdout
    assert f"Next, for hours: tidings study run {path}" in shown.stdout


def test_a_study_of_subscribers_runs_and_names_them(tmp_path: Path) -> None:
    study = STUDY.replace("links.failure_probability", "subscriber").replace(
        '"delivery_ratio", "packets_per_subscriber"', '"delay_mean_s", "loss_ratio"'
    )
    grid = """
[grid]
"broker.strategy" = ["direct"]
"links.processing_ms" = [0]
"run.seed" = [1, 2]
"run.seconds" = [2]
"""
    claim = """
[[claim]]
id = "as-far-as-it-is"
text = "The direct path to n5 takes 12 ms"
paper = 0.012
metric = "delay_mean_s"
strategy = "direct"
x = "s5.t1"
kind = "near"
tolerance = 0.0001
"""
    path = a_study_file(tmp_path, study, grid, claim)
    (tmp_path / "tiny.toml").write_text((PROJECT / "scenarios" / "harmony.toml").read_text())
    said = tidings("run", path, "--out", tmp_path / "out", "--master", "local[2]", "--json")
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    delays = {p["x"]: p["mean"] for p in found["points"] if p["metric"] == "delay_mean_s"}
    labels = ["s1.t1", "s1.t2", "s3.t3", "s4.t2", "s5.t1", "s5.t3"]
    assert list(delays) == [*labels, "mean"]
    assert delays["mean"] == pytest.approx(sum(delays[label] for label in labels) / 6)
    assert [claim["verdict"] for claim in found["claims"]] == ["holds"]
