"""One scenario, one digest: in any process, under any hash seed, and inside a Spark executor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.sweeps import TINY_SCENARIO, a_spec

from tidings.pipeline.sweep.grid import read_spec
from tidings.pipeline.sweep.job import sweep
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.world import simulate
from tidings.traces.points import finished_points

# Every kind of chance: losses, failure epochs, outages of links and brokers, Poisson arrivals.
EVENTFUL = (
    TINY_SCENARIO.replace("[links]", "[links]\nloss_ratio = 0.05")
    .replace("[workload]", '[workload]\narrivals = "poisson"')
    .replace('estimates = "pinned"', 'estimates = "measured"\nprobe_every_s = 0.5')
    + "[faults]\nlink_failures_per_hour = 600\nlink_outage_s = 0.5\n"
    + "broker_failures_per_hour = 600\nbroker_outage_s = 0.5\n"
)

DIGEST = """
import sys
from pathlib import Path
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.world import simulate
setup = set_up(load(Path(sys.argv[1])))
print(setup.digest, simulate(setup).digest)
"""


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_a_process_of_any_hash_seed_gives_the_same_digest(hash_seed: str, tmp_path: Path) -> None:
    (tmp_path / "eventful.toml").write_text(EVENTFUL)
    scenario = load(tmp_path / "eventful.toml")
    said = subprocess.run(
        [sys.executable, "-c", DIGEST, str(tmp_path / "eventful.toml")],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.split() == [set_up(scenario).digest, simulate(set_up(scenario)).digest]


def test_another_seed_gives_another_digest(tmp_path: Path) -> None:
    (tmp_path / "eventful.toml").write_text(EVENTFUL)
    one, two = (load(tmp_path / "eventful.toml", {"run.seed": seed}) for seed in (1, 2))
    assert set_up(one).digest != set_up(two).digest
    assert simulate(set_up(one)).digest != simulate(set_up(two)).digest


@pytest.mark.xdist_group("spark")
def test_a_spark_executor_gives_the_same_digest(tmp_path: Path, spark: SparkSession) -> None:
    spec = read_spec(a_spec(tmp_path, "run.seed = [1, 2]", EVENTFUL))
    report = sweep(spec, tmp_path / "out", lambda: spark, lambda *now: None)
    assert report.ran == 2, report.failures
    for row in finished_points(tmp_path / "out").to_pylist():
        scenario = load(tmp_path / "tiny.toml", {"run.seed": row["seed"]})
        assert row["point"] == set_up(scenario).digest
        assert row["digest"] == simulate(set_up(scenario)).digest
