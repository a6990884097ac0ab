"""Real brokers whose links are replaced under traffic, and brokers that leave and come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.replaced_links import a_moving_setup, links_at_the_end, run_live

from tidings.sim.world import simulate

OVERLAY = {"kind": "random-degree", "brokers": 6, "degree": 3, "delay_ms": [5.0, 15.0]}
WORKLOAD = {"topics": 4, "rate_per_s": 10.0, "subscribe_probability": [0.8, 0.8]}


@pytest.mark.parametrize("strategy", ["d-tree", "dcrd"])
def test_links_that_are_replaced_twice_a_second_lose_no_more_than_in_the_simulator(
    tmp_path: Path, strategy: str
) -> None:
    setup = a_moving_setup(
        {
            "run": {"seconds": 8.0, "start_s": 1.0, "drain_s": 4.0},
            "topology": OVERLAY,
            "broker": {"strategy": strategy, "estimates": "measured"},
            "dynamics": {"break_every_s": 0.5, "repair_s": 0.1},
            "workload": WORKLOAD,
        }
    )
    assert len(setup.moves) > 20
    theory, practice = simulate(setup), run_live(setup, tmp_path)
    assert practice.links == links_at_the_end(setup)
    assert set(practice.subscriptions.values()) == {len(setup.load.subscriptions)}
    assert practice.summary.publications == theory.publications
    assert practice.summary.delivered == practice.summary.expected == theory.deliveries


def test_brokers_that_leave_or_crash_are_back_with_the_links_of_the_schedule(
    tmp_path: Path,
) -> None:
    setup = a_moving_setup(
        {
            "run": {"seconds": 12.0, "start_s": 1.0, "drain_s": 4.0},
            "topology": OVERLAY,
            "broker": {"strategy": "d-tree", "estimates": "measured"},
            "dynamics": {
                "repair_s": 0.2,
                "absence": [
                    {"broker": "b2", "from_s": 3.0, "to_s": 6.0, "leaves": True},
                    {"broker": "b5", "from_s": 4.0, "to_s": 7.0},
                ],
            },
            "workload": WORKLOAD,
        }
    )
    practice = run_live(setup, tmp_path)
    assert practice.links == links_at_the_end(setup)
    assert set(practice.subscriptions.values()) == {len(setup.load.subscriptions)}
    assert practice.summary.delivered > 0.5 * practice.summary.expected
