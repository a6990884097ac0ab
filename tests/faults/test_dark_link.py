"""A link that drops everything without a word: `dcrd` finds the other way, message by message."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.attempts import in_real_time
from support.triangle import Story, triangle

DARK_S, LIGHT_S, END_S = 3.0, 8.0, 11.0
PATIENCE_S, IN_TIME = 0.100, 0.99
ALONE = 0.98  # while links are healthy: all, but for moments at which the machine stands still
PROBING = {"probe_every_s": 1.0, "probe_timeout_s": 0.5, "probes_missed": 3}
NOTICED_WITHIN_S = 4.0  # three probes a second apart, the first up to a second after the failure

pytestmark = pytest.mark.timing


def test_a_dark_link_costs_no_message_and_hardly_any_time(tmp_path: Path) -> None:
    def dark(attempt: int) -> Story:
        outage = {"outages": [[DARK_S, LIGHT_S]]}
        story = triangle(tmp_path / str(attempt), END_S, outage, **PROBING)
        assert story.lost == story.repeated == 0
        return story

    in_real_time(dark, judge)


def judge(story: Story) -> None:
    assert story.within(PATIENCE_S) >= IN_TIME
    assert story.between(0.0, DARK_S).alone >= ALONE
    probed(story)


def probed(story: Story) -> None:
    """Until the probes tell, each message finds out by itself; then none tries any more."""
    downs = [at for at, broker, _, up in story.changes if broker == "a" and not up]
    assert DARK_S < downs[0] < DARK_S + NOTICED_WITHIN_S
    unnoticed, noticed = story.between(DARK_S, downs[0]), story.between(downs[0], LIGHT_S)
    assert unnoticed.copies > 2.5, "the direct link is tried, given up, and gone round"
    assert noticed.copies < 2.5, "the direct link is left alone"
