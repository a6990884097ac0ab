"""A small study on disk, and results made by hand."""

from pathlib import Path

from support.sweeps import TINY_SCENARIO

from tidings.studies.spec import Study, read_study

# Two subscribers that have names.
NAMED_SUBSCRIBERS = """
[topology]
kind = "harmony"
[[workload.publisher]]
broker = "n2"
topic = "harmony/t1"
[[workload.subscriber]]
name = "s1"
broker = "n1"
topic = "harmony/t1"
[[workload.subscriber]]
name = "s5"
broker = "n5"
topic = "harmony/t1"
"""

STUDY = """
[study]
title = "Trees and failures"
paper = "A paper"
figure = "Figure 1"
section = "IV"
x = "links.failure_probability"
metrics = ["delivery_ratio", "packets_per_subscriber"]
"""

GRID = """
[grid]
"broker.strategy" = ["d-tree", "r-tree"]
"links.failure_probability" = [0.0, 0.2, 0.4]
"run.seed" = { from = 1, count = 2 }
[quick]
"links.failure_probability" = [0.0, 0.4]
"run.seconds" = [2]
"""

CLAIMS = """
[[claim]]
id = "all-without-failures"
text = "Without failures everything is delivered"
paper = 1.0
metric = "delivery_ratio"
strategy = ["d-tree", "r-tree"]
x = 0.0
kind = "near"
[[claim]]
id = "all-with-failures"
text = "Failures do no harm"
paper = "no harm"
metric = "delivery_ratio"
strategy = "d-tree"
x = 0.4
kind = "at least"
value = 1.0
why = "Trees never reroute."
[[claim]]
id = "in-between"
text = "About 80 % in between"
paper = 0.8
metric = "delivery_ratio"
strategy = "d-tree"
x = 0.2
kind = "near"
tolerance = 0.2
"""


def a_study_file(
    folder: Path, study: str = STUDY, grid: str = GRID, claims: str = CLAIMS, more: str = ""
) -> Path:
    """A study and its scenario in a folder of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.toml").write_text(TINY_SCENARIO)
    path = folder / "trees.toml"
    path.write_text(f'scenario = "tiny.toml"\n{study}{grid}{more}{claims}')
    return path


def a_study(folder: Path, more: str = "") -> Study:
    return read_study(a_study_file(folder, more=more))
