"""Links that come and go by a schedule: both worlds lose the same, and deliver all the rest."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support.attempts import in_real_time
from support.two_worlds import Account, live, simulated

MOVING = Path(__file__).parent / "moving.toml"
MEDIAN_S = 0.005  # how far apart the two worlds may be

pytestmark = pytest.mark.timing


def test_links_that_come_and_go_cost_both_worlds_the_same_messages(tmp_path: Path) -> None:
    theory = simulated(MOVING, tmp_path / "sim")
    assert 0.05 < theory.loss < 0.5, "some are cut off for a while, and not all"

    def practice(attempt: int) -> Account:
        found = live(MOVING, tmp_path / f"live-{attempt}")
        assert found.publications == theory.publications
        assert found.delivered == theory.delivered
        return found

    in_real_time(practice, partial(same_delays, theory))


def same_delays(theory: Account, practice: Account) -> None:
    for subscription in theory.delays_s:
        expected_s = theory.median_s(subscription)
        assert practice.median_s(subscription) == pytest.approx(expected_s, abs=MEDIAN_S)
