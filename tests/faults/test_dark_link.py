"""A link that drops everything without a word: `dcrd` finds the other way, message by message.

How soon each message is there is judged in the simulator. Of live brokers it is judged what they
do, and that half of the messages are in time: timers learn from the answers of a machine that may
be busy, so a pause makes the messages after it wait longer for the direct link as well.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.attempts import in_real_time
from support.scenarios import a_scenario, outcome, served, wanted
from support.triangle import LINK, Story, triangle

DARK_S, LIGHT_S, END_S = 3.0, 8.0, 11.0
RATE_PER_S = 100.0
PATIENCE_S = 0.100
ALONE = 0.9  # while links are healthy: all, but for moments at which the machine stands still
PROBING = {"probe_every_s": 1.0, "probe_timeout_s": 0.5, "probes_missed": 3}
NOTICED_WITHIN_S = 4.0  # three probes a second apart, the first up to a second after the failure


def test_a_dark_link_costs_no_message_and_hardly_any_time_in_the_simulator() -> None:
    delay_ms = 1000.0 * LINK["delay_s"]
    start_s = 1.0
    dark = {"link": ["a", "c"], "from_s": start_s + DARK_S, "to_s": start_s + LIGHT_S}
    scenario = a_scenario(
        run={"seconds": END_S, "start_s": start_s, "drain_s": 3.0},
        topology={
            "kind": "listed",
            "links_ms": [["a", "b", delay_ms], ["b", "c", delay_ms], ["a", "c", delay_ms]],
        },
        workload={
            "publisher": [{"broker": "a", "topic": "t", "rate_per_s": RATE_PER_S, "phase_s": 0.0}],
            "subscriber": [{"broker": "c", "topic": "t"}],
        },
        broker={"strategy": "dcrd", "estimates": "measured", **PROBING},
        faults={"schedule": [dark]},
    )
    _, tables = outcome(scenario)
    assert served(tables) == wanted(tables)
    assert len(tables["delivered"]) == END_S * RATE_PER_S
    assert np.quantile([row["age_s"] for row in tables["delivered"]], 0.99) <= PATIENCE_S


@pytest.mark.timing
def test_a_dark_link_costs_no_message_among_live_brokers(tmp_path: Path) -> None:
    def dark(attempt: int) -> Story:
        outage = {"outages": [[DARK_S, LIGHT_S]]}
        story = triangle(tmp_path / str(attempt), END_S, outage, RATE_PER_S, **PROBING)
        assert story.lost == story.repeated == 0
        return story

    in_real_time(dark, judge)


def judge(story: Story) -> None:
    """Until the probes tell, each message finds out by itself; then none tries any more."""
    assert story.between(0.0, DARK_S).alone >= ALONE
    downs = [at for at, broker, _, up in story.changes if broker == "a" and not up]
    assert DARK_S < downs[0] < DARK_S + NOTICED_WITHIN_S
    unnoticed, noticed = story.between(DARK_S, downs[0]), story.between(downs[0], LIGHT_S)
    assert unnoticed.within(PATIENCE_S) > 0.5
    assert unnoticed.copies > 2.5, "the direct link is tried, given up, and gone round"
    assert noticed.copies < 2.5, "the direct link is left alone"
