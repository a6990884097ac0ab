"""Brokers that sleep and wake: their links are silent meanwhile, and what waits arrives."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from support.scenarios import a_scenario, outcome, served, wanted

from tidings.core.errors import ConfigError
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario

AWAKE_S, ASLEEP_S = 1.5, 0.5
LONGEST_LINK_S = 0.1  # delay: what was sent before a nap comes in during it


def sleepy(strategy: str = "dcrd", **broker: Any) -> Scenario:
    return a_scenario(
        topology={"kind": "random-degree", "brokers": 10, "degree": 4},
        broker={"strategy": strategy, "estimates": "measured", **broker},
        run={"seconds": 10.0, "start_s": 3.0, "drain_s": 20.0},
        workload={"topics": 4, "rate_per_s": 5.0, "subscribe_probability": [1.0, 1.0]},
        dynamics={"awake_s": AWAKE_S, "asleep_s": ASLEEP_S},
    )


def test_every_broker_sleeps_for_its_part_of_the_time_and_not_all_at_once() -> None:
    setup = set_up(sleepy())
    naps = setup.outages.asleep
    assert set(naps) == set(setup.overlay.brokers)
    for intervals in naps.values():
        assert len(intervals) >= 4
        for start, end in intervals:
            assert end - start == pytest.approx(ASLEEP_S)
        for (_, woke_at), (asleep_at, _) in pairwise(intervals):
            assert asleep_at - woke_at == pytest.approx(AWAKE_S)
    assert len({intervals[0][0] for intervals in naps.values()}) == len(naps)


def test_a_link_is_silent_exactly_while_one_of_its_ends_sleeps() -> None:
    setup = set_up(sleepy())
    naps = setup.outages.asleep
    for (a, b), conditions in setup.conditions.items():
        for step in range(1_400):
            at = step / 100 + 0.003
            sleeps = any(start <= at < end for ends in (naps[a], naps[b]) for start, end in ends)
            silent = any(start <= at < end for start, end in conditions.outages)
            assert sleeps == silent


@pytest.mark.parametrize("strategy", ["dcrd", "d-tree", "qos-path"])
def test_what_is_for_a_sleeper_arrives_when_it_wakes(strategy: str) -> None:
    scenario = sleepy(strategy)
    naps = set_up(scenario).outages.asleep
    _, rows = outcome(scenario)
    assert served(rows) == wanted(rows) != set()
    for row in rows["delivered"]:
        if row["hops"] > 1:
            at = row["recorded_at"]
            assert not any(start + LONGEST_LINK_S < at < end for start, end in naps[row["broker"]])
    late = [row for row in rows["delivered"] if row["age_s"] > ASLEEP_S / 2]
    assert late, "somebody was asleep"


def test_naps_that_are_too_many_to_draw_are_refused() -> None:
    short = {"awake_s": 1e-6, "asleep_s": 1e-6}
    with pytest.raises(ConfigError, match=r"dynamics\.awake_s is 1e-06.*at most 100,000 times"):
        set_up(a_scenario(dynamics=short))
