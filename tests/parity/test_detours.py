"""Scripted link failures under `dcrd`: both worlds take the same detours, hop by hop."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from support.two_worlds import live, simulated

DETOURS = Path(__file__).parent / "detours.toml"

pytestmark = pytest.mark.timing

# What the outages are meant to make of a message; see the scenario's map and schedule.
STRAIGHT = ("west", "south", "east", "far")
REROUTED = [("west", "south"), ("west", "north"), ("north", "east"), ("east", "far")]
RETURNED = [("west", "south"), ("south", "east"), ("south", "west")]
RETURNED += [("west", "north"), ("north", "east"), ("east", "far")]
THROUGH_FAR = [*RETURNED[:-1], ("north", "far"), ("far", "east")]


def test_both_worlds_take_the_same_detours_and_deliver_the_same_messages(tmp_path: Path) -> None:
    theory, practice = simulated(DETOURS, tmp_path / "sim"), live(DETOURS, tmp_path / "live")
    hops = theory.hops
    assert hops["detour/west", 0] == hops["detour/west", 5] == list(pairwise(STRAIGHT))
    assert hops["detour/west", 1] == REROUTED
    assert hops["detour/west", 2] == RETURNED
    assert hops["detour/west", 4] == THROUGH_FAR
    assert practice.hops == theory.hops
    assert practice.publications == theory.publications
    assert practice.delivered == theory.delivered
    assert practice.loss == theory.loss == 0
