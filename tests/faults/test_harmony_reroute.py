"""`reroute = true`: live brokers lose nothing while a way is left, whatever fails silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.attempts import in_real_time
from support.cut_off import cut_off_spells, lost_in_vain
from support.two_worlds import Account, live

from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.traces.headline import read_tables

REROUTE = Path(__file__).parent / "harmony-reroute.toml"
KILLED = Path(__file__).parent / "harmony-killed.toml"
NEEDS_S = 0.5  # what a message may need, by a detour, on a busy machine
CUT_OFF_S = 8.5  # from when on nothing reaches n1
TELLS_AFTER_S = 1.0  # three missed probes, 0.5 s apart

# A broker that is killed takes with it what it has acknowledged and emulation still holds back, as
# if it were on the link: 12 ms of messages, and as many more as the machine was busy for.
KILLED_S, HELD_S = 6.0, 0.15

START_S, RATE_PER_S = 2.0, 20.0


def test_what_is_planned_to_cut_a_broker_off_is_seen_to_do_so() -> None:
    scenario = load(REROUTE)
    overlay = set_up(scenario).overlay
    broken = set_up(scenario).outages
    assert cut_off_spells(overlay, broken, "n2", "n1")[0][0] == CUT_OFF_S
    assert cut_off_spells(overlay, broken, "n2", "n5") == []
    scenario = load(KILLED)
    broken = set_up(scenario).outages
    assert cut_off_spells(overlay, broken, "n2", "n1") == []
    assert cut_off_spells(overlay, broken, "n2", "n5")[0][0] == KILLED_S


@pytest.mark.timing
def test_a_silent_link_costs_no_message_unless_nothing_else_is_left(tmp_path: Path) -> None:
    def observe(attempt: int) -> Account:
        account = live(REROUTE, tmp_path / str(attempt))
        assert lost_in_vain(REROUTE, account, NEEDS_S) == []
        lost = {subscription.split("/")[0] for _, _, subscription in account.lost}
        assert lost == {"n1"}, "its links fail for good"
        return account

    def judge(account: Account) -> None:
        around = [
            hops
            for hops in account.hops.values()
            if ("n2", "n5") in hops and {("n1", "n5"), ("n3", "n5")} & set(hops)
        ]
        assert len(around) >= TELLS_AFTER_S * RATE_PER_S, "each by itself, until the probes tell"

    in_real_time(observe, judge)


@pytest.mark.timing
def test_a_killed_broker_on_the_way_costs_what_it_held_and_no_more(tmp_path: Path) -> None:
    def observe(attempt: int) -> Account:
        traces = tmp_path / str(attempt)
        account = live(KILLED, traces)
        lost = lost_in_vain(KILLED, account, NEEDS_S)
        gone_s = max(KILLED_S, seen_gone_s(traces))
        assert [at for at, _, _ in lost if not KILLED_S - HELD_S < at < gone_s + HELD_S] == []
        last = account.hops["t1", account.publications["t1"] - 1]
        assert ("n2", "n5") not in last, "nobody tries it any more"
        return account

    def judge(account: Account) -> None:
        by_n5 = [hops for hops in account.hops.values() if hops[0] == ("n2", "n5")]
        assert len(by_n5) >= RATE_PER_S / 2, "it was on the way: on a busy machine, others may be"

    in_real_time(observe, judge)


def seen_gone_s(traces: Path) -> float:
    """When n5 was really killed, by the connections that it left, in seconds since the run began:
    not before the planned instant, but when the one who does it gets to it."""
    tables = read_tables(traces)
    said_at = sorted(tables["published"]["recorded_at"].to_pylist())
    began_at = min(at - number / RATE_PER_S for number, at in enumerate(said_at)) - START_S
    downs = [r["recorded_at"] - began_at for r in tables["link_changed"].to_pylist() if lost_n5(r)]
    return min(at_s for at_s in downs if at_s > KILLED_S - HELD_S)


def lost_n5(row: dict[str, Any]) -> bool:
    return row["neighbour"] == "n5" and not row["up"]
