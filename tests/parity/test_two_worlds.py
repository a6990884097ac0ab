"""The same scenario in the simulator and in live brokers: the same story."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support.attempts import in_real_time
from support.two_worlds import Account, live, simulated

PINNED = Path(__file__).parent / "pinned.toml"
MEDIAN_S, P95_S, LOSS = 0.005, 0.015, 0.01  # how far apart the two worlds may be

# From 6.2 s to 10.2 s: publications are at 3.0, 3.2, 3.4, 5.0, 5.2, 5.4, ... so the edges are at
# least 0.8 s from any of them.
OUTAGE = '\n[faults]\nschedule = [{ link = ["south", "east"], from_s = 6.2, to_s = 10.2 }]\n'

pytestmark = pytest.mark.timing


def scenario(folder: Path, *changes: tuple[str, str], faults: str = "") -> Path:
    path, text = folder / "scenario.toml", PINNED.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text + faults)
    return path


def test_without_faults_both_worlds_deliver_the_same_messages_with_the_same_delays(
    tmp_path: Path,
) -> None:
    path = scenario(tmp_path, ("rate_per_s = 0.5", "rate_per_s = 10"))
    theory = simulated(path, tmp_path / "sim")

    def practice(attempt: int) -> Account:
        found = live(path, tmp_path / f"live-{attempt}")
        assert found.publications == theory.publications
        assert found.delivered == theory.delivered
        assert found.loss == theory.loss == 0
        return found

    in_real_time(practice, partial(same_delays, theory))


def test_open_messages_come_to_the_same_clients_in_both_worlds(tmp_path: Path) -> None:
    changes = (
        ('strategy = "d-tree"', 'strategy = "flooding"\ninterests = 1'),
        ("rate_per_s = 0.5", "rate_per_s = 5"),
        ("seconds = 14", "seconds = 4"),
    )
    path = scenario(tmp_path, *changes)
    theory, practice = simulated(path, tmp_path / "sim"), live(path, tmp_path / "live")
    assert theory.loss == practice.loss == 0
    assert theory.delivered == practice.delivered != set()


def same_delays(theory: Account, practice: Account) -> None:
    for subscription in theory.delays_s:
        assert practice.median_s(subscription) == pytest.approx(
            theory.median_s(subscription), abs=MEDIAN_S
        ), subscription
        assert practice.p95_s(subscription) == pytest.approx(
            theory.p95_s(subscription), abs=P95_S
        ), subscription


def test_a_dark_link_costs_both_worlds_the_same_messages(tmp_path: Path) -> None:
    path = scenario(tmp_path, faults=OUTAGE)
    theory, practice = simulated(path, tmp_path / "sim"), live(path, tmp_path / "live")
    assert 0.05 < theory.loss < 0.5, "the outage is meant to cost something, and not everything"
    assert practice.delivered == theory.delivered
    assert practice.loss == pytest.approx(theory.loss, abs=LOSS)


def test_with_measured_estimates_both_worlds_deliver_the_same_messages(tmp_path: Path) -> None:
    path = scenario(tmp_path, ('"pinned"', '"measured"'))
    theory, practice = simulated(path, tmp_path / "sim"), live(path, tmp_path / "live")
    assert practice.delivered == theory.delivered
    assert practice.expected == theory.expected
