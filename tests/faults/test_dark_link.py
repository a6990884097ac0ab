"""A link that drops everything without a word: `dcrd` finds the other way, message by message."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.triangle import Story, triangle

DARK_S, LIGHT_S, END_S = 3.0, 8.0, 11.0
PATIENCE_S, IN_TIME = 0.100, 0.99
ALONE = 0.98  # while links are healthy: all, but for moments at which the machine stands still
PROBING = {"probe_every_s": 1.0, "probe_timeout_s": 0.5, "probes_missed": 3}
NOTICED_WITHIN_S = 4.0  # three probes a second apart, the first up to a second after the failure

pytestmark = pytest.mark.timing


def dark(folder: Path) -> Story:
    return triangle(folder, END_S, {"outages": [[DARK_S, LIGHT_S]]}, **PROBING)


def test_a_dark_link_costs_no_message_and_hardly_any_time(tmp_path: Path) -> None:
    story = dark(tmp_path / "dark")
    assert story.lost == story.repeated == 0
    healthy = [story.between(0.0, DARK_S)]
    if story.within(PATIENCE_S) < IN_TIME or healthy[0].alone < ALONE:  # or is the machine busy?
        healthy.append(triangle(tmp_path / "control", END_S, {}, **PROBING))
        if story.within(PATIENCE_S) < IN_TIME and healthy[1].within(PATIENCE_S) < IN_TIME:
            story = dark(tmp_path / "again")
    assert story.lost == story.repeated == 0
    assert story.within(PATIENCE_S) >= IN_TIME
    assert max(part.alone for part in healthy) >= ALONE
    probed(story)


def probed(story: Story) -> None:
    """Until the probes tell, each message finds out by itself; then none tries any more."""
    downs = [at for at, broker, _, up in story.changes if broker == "a" and not up]
    assert DARK_S < downs[0] < DARK_S + NOTICED_WITHIN_S
    unnoticed, noticed = story.between(DARK_S, downs[0]), story.between(downs[0], LIGHT_S)
    assert unnoticed.copies > 2.5, "the direct link is tried, given up, and gone round"
    assert noticed.copies < 2.5, "the direct link is left alone"
