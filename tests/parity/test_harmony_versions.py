"""One link of Harmony's testbed fails: every version loses and takes the same in both worlds.

When a monitor notices a failure, or its end, depends on when it probes: up to a period later or
earlier. Live brokers are not started at the same instant, so the worlds may differ by the messages
of one probing period for each edge of the outage that a version has to notice, and by a message at
the edge itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.attempts import in_real_time
from support.harmony import SUBSCRIBERS, VERSIONS, load, subscription
from support.two_worlds import Account, live, simulated

SCENARIO = Path(__file__).parent / "harmony.toml"
RATE_PER_S = 20.0
PROBE_EVERY_S, RETRY_EVERY_S, OUTAGE_S = 0.5, 0.1, 2.8  # as in the scenario
A_PERIOD = PROBE_EVERY_S * RATE_PER_S + 1  # of messages
MEDIAN_S, P95_S = 0.005, 0.015  # how far apart the two worlds may be, as in `test_two_worlds`
HIT = ("n5", "t1")  # whose direct path fails

# How many probing periods of messages the two worlds may differ by in loss: direct messages are
# lost until the link is known to work again; those by chosen paths until it is known to fail.
UNSURE = {"direct": 1, "best-path": 1, "qos-path": 1, "qos-multipath": 0, "persistent": 0}

# Their paths do not depend on how long a busy machine makes a link look, so losses do not either.
STEADY = ("direct", "persistent")

# How much earlier or later still the slowest messages of the subscription that is hit may come.
# What waits for the link waits until it is known to work; who reroutes waits for a timer first, and
# that has learned from the answers of a machine that may be busy.
WAITS_S = {"persistent": (PROBE_EVERY_S + RETRY_EVERY_S,) * 2, "rerouted": (0.0, 0.1)}

pytestmark = pytest.mark.timing

Worlds = tuple[Account, Account]  # theory, practice


def both(folder: Path, versions: tuple[str, ...], reroute: bool) -> Worlds:
    text, setting = SCENARIO.read_text(), f"reroute = {str(reroute).lower()}\n"
    assert "[broker.harmony]\n" in text
    path = folder / "scenario.toml"
    text = text.replace("[broker.harmony]\n", "[broker.harmony]\n" + setting)
    path.write_text(text + load(versions, RATE_PER_S))
    theory = simulated(path, folder / "sim")
    sure = {
        subscription(version, *pair)
        for version in versions
        for pair in SUBSCRIBERS
        if reroute or (version in STEADY and pair != HIT)
    }

    def observe(attempt: int) -> Worlds:
        practice = live(path, folder / f"live-{attempt}")
        assert practice.wanted == theory.wanted
        differing = practice.delivered ^ theory.delivered
        assert {name for _, _, name in differing} & sure == set()
        return theory, practice

    def judge(worlds: Worlds) -> None:
        for version in versions:
            agree(worlds, version, reroute)

    return in_real_time(observe, judge)


def agree(worlds: Worlds, version: str, reroute: bool) -> None:
    """On what became of the messages of a version."""
    theory, practice = worlds
    waits_s = WAITS_S.get("rerouted" if reroute else version, (0.0, 0.0))
    for broker, topic in SUBSCRIBERS:
        name = subscription(version, broker, topic)
        hit = (broker, topic) == HIT
        told, found = theory.subscribers[name], practice.subscribers[name]
        unsure = UNSURE[version] * A_PERIOD if hit else 0
        assert found.expected == told.expected == 9 * RATE_PER_S
        assert found.delivered == pytest.approx(told.delivered, abs=unsure), name
        assert found.delay_p50_s == pytest.approx(told.delay_p50_s, abs=MEDIAN_S), name
        earlier_s, later_s = waits_s if hit else (0.0, 0.0)
        late_s = found.delay_p95_s - told.delay_p95_s
        assert -P95_S - earlier_s <= late_s <= P95_S + later_s, name


@pytest.fixture(scope="module")
def as_published(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """All versions of the paper in one run of each world."""
    return both(tmp_path_factory.mktemp("versions"), tuple(VERSIONS), reroute=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_loses_and_takes_the_same_in_both_worlds(
    as_published: Worlds, version: str
) -> None:
    agree(as_published, version, reroute=False)


def test_the_failure_costs_each_version_what_the_paper_says(as_published: Worlds) -> None:
    for world in as_published:
        got = {version: world.subscribers[subscription(version, *HIT)] for version in VERSIONS}
        lost = {version: row.expected - row.delivered for version, row in got.items()}
        assert lost["direct"] >= OUTAGE_S * RATE_PER_S - 1, "all that was said meanwhile"
        assert 1.0 * RATE_PER_S <= lost["best-path"] <= 2.0 * RATE_PER_S, "three missed probes"
        assert 1.0 * RATE_PER_S <= lost["qos-path"] <= 2.0 * RATE_PER_S, "it cannot know more"
        assert lost["qos-multipath"] == lost["persistent"] == 0
        assert got["persistent"].delay_p95_s > 1.0, "what waited for the link comes late"


def test_hop_by_hop_rerouting_loses_nothing_and_takes_the_same_in_both_worlds(
    tmp_path: Path,
) -> None:
    theory, practice = both(tmp_path, ("qos-path", "qos-multipath"), reroute=True)
    assert theory.lost == practice.lost == []
