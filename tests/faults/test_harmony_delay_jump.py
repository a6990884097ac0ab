"""A link of the path becomes slow: `qos-path` leaves it at once, `best-path` when it is time to.

Both worlds: the budget of the link is 12 ms and a margin of 38 ms, so the mean delay has exceeded
it after two or three answers, which take 200 ms each, and 50 ms lie between two messages.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.attempts import in_real_time
from support.two_worlds import Account, live, simulated

from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up

JUMP = Path(__file__).parent / "harmony-jump.toml"
START_S, JUMP_S, WITHIN_S = 2.0, 5.0, 1.0
RATE_PER_S = 20.0


def test_only_the_link_that_is_meant_to_becomes_slow() -> None:
    scenario = load(JUMP)
    slow = set_up(scenario).outages.slow
    assert {ends: spells[0][0] for ends, spells in slow.items() if spells} == {("n2", "n5"): JUMP_S}


def test_the_source_leaves_a_path_that_exceeds_its_budget_within_a_second(tmp_path: Path) -> None:
    leaves_in_time(simulated(JUMP, tmp_path))


@pytest.mark.timing
def test_a_live_source_leaves_a_path_that_exceeds_its_budget_within_a_second(
    tmp_path: Path,
) -> None:
    in_real_time(lambda attempt: live(JUMP, tmp_path / str(attempt)), leaves_in_time)


def leaves_in_time(account: Account) -> None:
    before, after = first_hops(account, "qos-path/t1")
    assert share(before, "n5") > 0.98
    assert share(after, "n5") == 0
    before, after = first_hops(account, "best-path/t1")
    assert share(before, "n5") > 0.98
    assert share(after, "n5") > 0.98, "nobody looks for a better one yet"


def first_hops(account: Account, topic: str) -> tuple[list[str], list[str]]:
    """Whom n2 gave messages to before the jump, and from a second after it."""
    count = account.publications[topic]
    firsts = [account.hops[topic, number][0][1] for number in range(count)]
    jump, left = ((at - START_S) * RATE_PER_S for at in (JUMP_S, JUMP_S + WITHIN_S))
    return firsts[: int(jump)], firsts[int(left) + 1 :]


def share(hops: list[str], neighbour: str) -> float:
    return hops.count(neighbour) / len(hops)
