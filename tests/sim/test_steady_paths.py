"""Where nothing changes, paths do not change: whole runs on a network at rest."""

from pathlib import Path

import pytest
from support.scenarios import a_scenario, arrow_tables, outcome

from tidings.scenarios.read import load

TESTBED = Path(__file__).parents[2] / "scenarios" / "harmony.toml"


@pytest.mark.parametrize("direct_ms", [1.9, 2.1, 2.5, 3.5, 5.0])
@pytest.mark.parametrize("strategy", ["best-path", "qos-path"])
def test_a_path_that_is_used_does_not_seem_longer_than_one_that_is_not(
    strategy: str, direct_ms: float
) -> None:
    links_ms = [["n1", "n2", direct_ms], ["n1", "n3", 1.0], ["n3", "n2", 1.0]]
    scenario = load(
        TESTBED,
        {
            "run.seconds": 150.0,
            "broker.strategy": strategy,
            "broker.trace": "hops",
            "topology": {"kind": "listed", "links_ms": links_ms},
            "workload.publisher": [{"broker": "n1", "topic": "t", "rate_per_s": 5.0}],
            "workload.subscriber": [{"broker": "n2", "topic": "t", "deadline_ms": 50.0}],
        },
    )
    forwarded = arrow_tables(scenario)["forwarded"].to_pylist()
    # After the first look for better paths, at 31 s, all links have been measured.
    later = {
        row["neighbour"] for row in forwarded if row["broker"] == "n1" and row["recorded_at"] > 35.0
    }
    assert len(later) == 1


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd", "qos-path"])
def test_two_hops_are_no_better_than_one_that_is_only_a_little_longer(strategy: str) -> None:
    """Between hosts that are so near, differences of delay are less than what hosts add."""
    links_ms = [["n1", "n2", 0.1], ["n2", "n3", 0.1], ["n1", "n3", 1.0]]
    result, _ = outcome(
        a_scenario(
            {"broker.strategy": strategy},
            broker={},
            topology={"kind": "listed", "links_ms": links_ms},
            workload={
                "publisher": [{"broker": "n1", "topic": "t", "rate_per_s": 50.0}],
                "subscriber": [{"broker": "n3", "topic": "t"}],
            },
        )
    )
    assert result.hops == result.deliveries == result.publications
