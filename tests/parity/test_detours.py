"""Scripted link failures under `dcrd`: both worlds take the same detours, hop by hop."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from support.attempts import in_real_time
from support.two_worlds import Account, live, simulated

DETOURS = Path(__file__).parent / "detours.toml"

pytestmark = pytest.mark.timing

# What the outages are meant to make of a message; see the scenario's map and schedule.
STRAIGHT = ("west", "south", "east", "far")
REROUTED = [("west", "south"), ("west", "north"), ("north", "east"), ("east", "far")]
RETURNED = [("west", "south"), ("south", "east"), ("south", "west")]
RETURNED += [("west", "north"), ("north", "east"), ("east", "far")]
THROUGH_FAR = [*RETURNED[:-1], ("north", "far"), ("far", "east")]


def test_both_worlds_take_the_same_detours_and_deliver_the_same_messages(tmp_path: Path) -> None:
    theory = simulated(DETOURS, tmp_path / "sim")
    hops = theory.hops
    assert hops["detour/west", 0] == hops["detour/west", 5] == list(pairwise(STRAIGHT))
    assert hops["detour/west", 1] == REROUTED
    assert hops["detour/west", 2] == RETURNED
    assert hops["detour/west", 4] == THROUGH_FAR

    def practice(attempt: int) -> Account:
        found = live(DETOURS, tmp_path / f"live-{attempt}")
        assert found.publications == theory.publications
        assert found.delivered == theory.delivered
        assert found.loss == theory.loss == 0
        return found

    def judge(practice: Account) -> None:
        assert practice.hops == theory.hops

    in_real_time(practice, judge)
