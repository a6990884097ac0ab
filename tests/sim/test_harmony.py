"""Harmony's versions in whole runs on the paper's testbed: who loses what, who is late?"""

from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.scenarios import arrow_tables

from tidings.core.topology.generators import HARMONY_DELAY_MS
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.world import simulate
from tidings.traces.headline import SubscriberSummary, per_subscriber, summary

TESTBED = Path(__file__).parents[2] / "scenarios" / "harmony.toml"
OVERLAY_PATHS = ("best-path", "qos-path", "qos-multipath")
S5_T1 = "n5/s5:harmony/t1"  # published at n2, 12 ms away


def the_testbed(strategy: str, **changes: Any) -> Scenario:
    """For a minute and a half, in which the link of s5.t1 may be bad from 20 s on."""
    short = {"run.seconds": 90.0, "run.start_s": 1.0, "broker.strategy": strategy}
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return load(TESTBED, short | named)


def bad_link(from_s: float, to_s: float) -> list[dict[str, Any]]:
    return [{"from_s": from_s, "to_s": to_s, "link": ["n2", "n5"]}]


RETRY = {"broker__harmony__reroute": True, "broker__exhausted": "retry"}
DARK = {"faults__schedule": bad_link(20.0, 60.0)}


@lru_cache(maxsize=8)
def _ran(strategy: str, changes: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    kept = dict(changes)
    if kept.pop("dark", False):
        kept |= DARK
    return arrow_tables(the_testbed(strategy, **kept))


def served(strategy: str, **changes: Any) -> dict[str, SubscriberSummary]:
    tables = _ran(strategy, tuple(sorted(changes.items())))
    return {each.subscription: each for each in per_subscriber(tables)}


def lost(strategy: str, **changes: Any) -> int:
    """How many messages s5.t1 did not get; the others must have got all."""
    found = served(strategy, **changes)
    others = [each for name, each in found.items() if name != S5_T1]
    assert all(each.delivered == each.expected for each in others)
    return found[S5_T1].expected - found[S5_T1].delivered


def late(strategy: str, **changes: Any) -> float:
    """For how many seconds s5.t1 got its messages late, at twenty a second."""
    each = served(strategy, **changes)[S5_T1]
    assert each.delivered == each.expected
    return each.delivered * (1 - each.on_time_ratio) / 20


def test_direct_loses_all_that_is_sent_while_its_link_is_dark() -> None:
    assert lost("direct", dark=True) == pytest.approx(40 * 20, abs=20 * 6)  # until a probe finds it


@pytest.mark.parametrize("strategy", ["best-path", "qos-path"])
def test_one_path_loses_what_is_sent_until_three_probes_are_missed(strategy: str) -> None:
    """Probes every 5 s with a timeout of 1 s: noticed 11 to 16 s after the link went dark."""
    assert 11 * 20 <= lost(strategy, dark=True) <= 17 * 20


def test_two_paths_lose_nothing_when_one_is_dark() -> None:
    assert lost("qos-multipath", dark=True) == 0


def test_persistent_direct_loses_nothing_and_takes_seconds() -> None:
    assert lost("direct", dark=True, workload__durable=True, run__drain_s=60.0) == 0
    worst_s = served("direct", dark=True, workload__durable=True, run__drain_s=60.0)[S5_T1]
    assert worst_s.delay_p95_s > 10.0


def test_with_rerouting_one_path_loses_nothing_at_little_cost() -> None:
    assert lost("qos-path", dark=True, broker__harmony__reroute=True) == 0
    tables = _ran("qos-path", (("broker__harmony__reroute", True), ("dark", True)))
    assert summary(tables).packets_per_subscriber < 1.3


SLOW = {
    "faults__slots__probability": 1.0,
    "faults__slots__clean_s": 19.0,
    "faults__slots__slot_s": 30.0,
    "faults__slots__count": 1,
    "faults__slots__delay_ms": 40.0,
}


def test_where_all_links_are_slow_one_is_better_than_two_and_all_is_in_time() -> None:
    """Each link takes 40 ms and 3 more for processing: a path of two would be late."""
    found = served("qos-path", **SLOW)
    assert all(each.delivered == each.expected for each in found.values())
    assert all(each.on_time_ratio == 1.0 for each in found.values())


@lru_cache(maxsize=1)
def a_seed_where_only_the_direct_link_is_slow() -> int:
    """Slots are drawn; some draw makes this link slow, and no other."""
    for seed in range(1, 500):
        scenario = the_testbed("direct", **ONE_SLOW, run__seed=seed)
        slow = {ends for ends, slots in set_up(scenario).outages.slow.items() if slots}
        if slow == {("n2", "n5")}:
            return seed
    raise AssertionError("no such seed")


ONE_SLOW = {**SLOW, "faults__slots__probability": 0.12, "faults__slots__delay_ms": 100.0}


@pytest.mark.parametrize(
    ("strategy", "least_s", "most_s"),
    [("direct", 29.5, 30.5), ("best-path", 2.0, 30.1), ("qos-path", 0.0, 0.5)],
)
def test_a_broken_budget_is_answered_sooner_than_the_next_check(
    strategy: str, least_s: float, most_s: float
) -> None:
    seed = a_seed_where_only_the_direct_link_is_slow()
    assert least_s <= late(strategy, **ONE_SLOW, run__seed=seed) <= most_s


def test_the_first_of_two_copies_is_on_time_when_a_link_is_slow() -> None:
    seed = a_seed_where_only_the_direct_link_is_slow()
    assert late("qos-multipath", **ONE_SLOW, run__seed=seed) <= 0.2


SHORTER = {
    tuple(sorted(ends)): (1.0 if ends in {("n3", "n5"), ("n4", "n5")} else ms)
    for ends, ms in HARMONY_DELAY_MS.items()
}
MULTI_HOP = {
    "topology": {"kind": "listed", "links_ms": [[a, b, ms] for (a, b), ms in SHORTER.items()]},
    "faults__slots__probability": 0.0,
}


@pytest.mark.parametrize("strategy", OVERLAY_PATHS)
def test_indirect_paths_are_taken_where_they_are_shorter(strategy: str) -> None:
    """Figure 7: the delays of the shortest paths, and 3 ms for each broker that a message meets.
    Of two copies the first counts: by the direct path s1.t1 has it sooner after all."""
    scenario = the_testbed(strategy, topology=MULTI_HOP["topology"], run__seconds=20.0)
    found = {
        each.subscription: each.delay_p50_s * 1000
        for each in per_subscriber(arrow_tables(scenario))
    }
    expected = {
        "n1/s1:harmony/t1": 16 + 3 if strategy == "qos-multipath" else 12 + 9,
        "n1/s1:harmony/t2": 7 + 6,
        "n3/s3:harmony/t3": 2 + 6,
        "n4/s4:harmony/t2": 2 + 6,
        "n5/s5:harmony/t1": 6 + 6,
        "n5/s5:harmony/t3": 1 + 3,
    }
    assert found == pytest.approx(expected, abs=0.5)


def test_control_traffic_does_not_grow_with_messages() -> None:
    told = []
    for size_bytes in (100, 10_000):
        scenario = the_testbed("qos-path", workload__payload_bytes=size_bytes, run__seconds=20.0)
        rows = arrow_tables(scenario)["carried"].to_pylist()
        told.append(sum(r["size_bytes"] for r in rows if r["kind"] not in ("data", "repeat")))
        data = [r for r in rows if r["kind"] == "data"]
        frames = sum(r["frames"] for r in data)
        assert sum(r["size_bytes"] - r["header_bytes"] for r in data) == frames * size_bytes
    assert told[0] == told[1]


@pytest.mark.parametrize(("level", "copies"), [(0.5, (1.0, 1.2)), (0.9999, (2.0, 9.0))])
def test_as_many_paths_are_used_as_the_availability_needs(
    level: float, copies: tuple[float, float]
) -> None:
    wishes = [
        {"broker": "n5", "topic": "harmony/t1", "name": "s5", "availability": level},
    ]
    scenario = the_testbed(
        "qos-multipath",
        workload__subscriber=wishes,
        broker__harmony__most_paths=3,
        run__seconds=10.0,
    )
    tables = arrow_tables(scenario)
    assert copies[0] <= summary(tables).packets_per_subscriber <= copies[1]


def test_a_stated_availability_is_reached_where_links_are_known_to_fail() -> None:
    """Each link is dark for 0.12 of all seconds, and so would one path be."""
    wishes = [{"broker": "n5", "topic": "harmony/t1", "name": "s5", "availability": 0.95}]
    scenario = the_testbed(
        "qos-multipath",
        workload__subscriber=wishes,
        links__failure_probability=0.12,
        broker__estimates="pinned",
        broker__harmony__failures="measured",
        run__seconds=300.0,
    )
    tables = arrow_tables(scenario)
    [each] = per_subscriber(tables)
    assert each.delivered >= 0.95 * each.expected
    assert summary(tables).packets_per_subscriber < 4.0


def test_an_impossible_deadline_is_said_once_and_messages_still_arrive() -> None:
    wishes = [{"broker": "n5", "topic": "harmony/t1", "name": "s5", "deadline_ms": 1.0}]
    scenario = the_testbed("qos-path", workload__subscriber=wishes, run__seconds=10.0)
    result = simulate(set_up(scenario))
    assert result.deliveries == 200
    [warning] = result.warnings
    assert "No path to n5 meets its deadline" in warning
    assert "1 ms are allowed" in warning


def test_slots_are_the_same_for_all_strategies_and_follow_each_other() -> None:
    changes: dict[str, Any] = {"faults__slots__probability": 0.5, "run__seconds": 300.0}
    found = [
        set_up(run).outages.links
        for run in (the_testbed(s, **changes) for s in ("direct", "qos-path"))
    ]
    assert found[0] == found[1]
    edges = {edge for slots in found[0].values() for slot in slots for edge in slot}
    assert edges <= {1.0 + 180.0 * number for number in range(1, 12)}
    assert all(
        end <= start for slots in found[0].values() for (_, end), (start, _) in pairwise(slots)
    )


@pytest.mark.parametrize("changes", [{"workload__durable": True}, RETRY])
def test_copies_that_wait_do_not_become_more(changes: dict[str, Any]) -> None:
    """A broker that is cut off for a while: what waits for it is sent again, but not twice as often
    each time."""
    dark = [{"from_s": 5.0, "to_s": 20.0, "link": ["n1", n]} for n in ("n2", "n3", "n4", "n5")]
    cut_off = the_testbed(
        "qos-multipath",
        **changes,
        faults__schedule=dark,
        workload__rate_per_s=1.0,
        run__seconds=20.0,
        run__drain_s=40.0,
    )
    result = simulate(set_up(cut_off))
    assert result.deliveries == 120
    assert result.hops < 50 * result.publications  # it was 480
