"""A link that becomes slow while messages flow: `dcrd` follows the estimates, without a restart."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median

import pytest
from support.attempts import in_real_time
from support.triangle import Story, triangle

SLOW_S, END_S = 3.0, 7.0
# What is believed of a link follows its late answers at once, and is told within a tenth of
# `advertise_every_s` (10 s); the rest is for a busy machine.
FOLLOWS_WITHIN_S = 2.0
MOST = 0.98

pytestmark = pytest.mark.timing


def test_when_the_direct_link_becomes_slow_messages_go_round_it(tmp_path: Path) -> None:
    def slow(attempt: int) -> Story:
        step = {"delay_steps": [[SLOW_S, 0.080]]}
        story = triangle(tmp_path / str(attempt), END_S, step)
        assert story.lost == story.repeated == 0
        return story

    in_real_time(slow, judge)


def judge(story: Story) -> None:
    assert begun_by(story.between(0.0, SLOW_S - 0.1), "c") >= MOST
    after = story.between(SLOW_S + FOLLOWS_WITHIN_S, END_S)
    assert begun_by(after, "b") >= MOST
    assert median(journey.delay_s for journey in after.journeys) < 0.060
    given_up = [j for j in story.journeys if j.hops[0] == ("a", "c") and len(j.hops) > 1]
    assert len(given_up) < 50, "the first late answer teaches the timer to wait longer"


def begun_by(story: Story, neighbour: str) -> float:
    """The share of messages that went to this neighbour of `a` first."""
    return fmean(journey.hops[0] == ("a", neighbour) for journey in story.journeys)
