"""The setup of bounded delay in virtual time: limited links, deadlines, prices, early deletion."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.scenarios import Tables, a_scenario, outcome, served, wanted

from tidings.core.links.outlook import outlook
from tidings.core.trace import TABLES
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.scheduling import POLICIES
from tidings.sim.world import simulate
from tidings.traces.headline import Summary, summary
from tidings.traces.schemas import arrow_schema

BOUNDED = Path(__file__).parents[2] / "scenarios" / "bounded.toml"
A_WHILE_S = 100.0  # after which hundreds of messages have ended in each of the ways there are
FIT = {
    "topology.publishers": 4,
    "links.processing_at": "every-hop",
    "workload.arrivals": "periodic",
    "broker.benefit.delete": "benefit",
    "broker.benefit.lifetimes": "unexpired",
}


def run(
    policy: str, deadlines: str = "publisher", setting: str = "literal", seconds: float = 300.0
) -> Summary:
    """Five minutes of the paper's setup; the checker watches that nothing vanishes."""
    return _run(policy, deadlines, setting, seconds)


@lru_cache
def _run(policy: str, deadlines: str, setting: str, seconds: float) -> Summary:
    changes: dict[str, Any] = FIT if setting == "fit" else {}
    changes = changes | {"broker.scheduling": policy, "run.seconds": seconds}
    changes["workload.content.deadlines"] = deadlines
    held: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}
    simulate(set_up(load(BOUNDED, changes)), sink=lambda table, batch: held[table].append(batch))
    return summary(
        {name: pa.Table.from_batches(held[name], arrow_schema(TABLES[name])) for name in TABLES}
    )


# ---- the physics


def two_links(changes: dict[str, Any], **publisher: Any) -> Tables:
    """Messages of 1,000 bytes, header included, from b1 over b2 to b3."""
    said = {"broker": "b1", "topic": "t", "rate_per_s": 0.2, "payload_bytes": 967, **publisher}
    scenario = a_scenario(
        {
            "run.seconds": 500.0,
            "run.drain_s": 30.0,
            "links.ms_per_kbyte": [500.0, 500.0],
            "links.processing_ms": 2.0,
            "links.ack": "instant",
            "broker.ack_slack_s": float("inf"),
            **changes,
        },
        topology={"kind": "listed", "links_ms": [["b1", "b2", 0.0], ["b2", "b3", 0.0]]},
        workload={"publisher": [said], "subscriber": [{"broker": "b3", "topic": "t"}]},
    )
    return outcome(scenario)[1]


def test_a_message_takes_the_mean_time_of_every_link_if_nothing_deviates() -> None:
    ages = {round(row["age_s"], 9) for row in two_links({})["delivered"]}
    assert ages == {1.004}


def test_a_publishers_broker_processes_a_message_as_every_later_broker_does() -> None:
    tables = two_links({"links.processing_at": "every-broker"})
    published = {row["message"]: row["recorded_at"] for row in tables["published"]}
    took = {round(row["recorded_at"] - published[row["message"]], 9) for row in tables["delivered"]}
    ages = {round(row["age_s"], 9) for row in tables["delivered"]}
    assert took == ages == {1.006}, "two links of half a second, three brokers of 2 ms"


def test_processing_at_the_first_broker_is_over_before_a_message_takes_its_place_in_a_queue() -> (
    None
):
    """A message that is said while the link is busy is processed meanwhile: it is not later."""
    said = {"rate_per_s": 10.0, "phase_s": 0.0}
    changes = {"run.seconds": 0.5, "links.processing_at": "every-broker", "broker.trace": "hops"}
    workload = two_links(changes, **said)
    sent = [row["recorded_at"] for row in workload["forwarded"] if row["broker"] == "b1"]
    assert [round(at - sent[0], 9) for at in sent] == [0.0, 0.5, 1.0, 1.5, 2.0]
    first_said_at = workload["published"][0]["recorded_at"]
    assert sent[0] == pytest.approx(first_said_at + 0.002)


def test_a_message_that_its_broker_takes_to_its_grave_was_never_published() -> None:
    changes = {"run.start_s": 2.0, "run.seconds": 1.0, "links.processing_ms": 300.0}
    scenario = a_scenario(
        {**changes, "links.processing_at": "every-broker", "workload.arrivals": "periodic"},
        workload={
            "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 4.0, "phase_s": 0.0}],
            "subscriber": [{"broker": "b2", "topic": "t"}],
        },
        faults={"schedule": [{"from_s": 2.4, "to_s": 2.45, "broker": "b1"}]},
    )
    result, tables = outcome(scenario)
    assert (result.publications, result.unpublished) == (3, 1)
    assert [round(row["recorded_at"], 9) for row in tables["published"]] == [2.0, 2.5, 2.75]


def test_the_papers_setup_processes_at_the_publishers_broker_unless_publishers_have_links() -> None:
    literal, fit = load(BOUNDED), load(BOUNDED, FIT)
    assert literal.links.first_processing_s == 0.002
    assert fit.links.first_processing_s == 0.0, "the first broker is at the end of that link"


def test_without_timers_nothing_is_repeated_or_given_up_however_slow_a_link_is() -> None:
    tables = two_links({"links.ms_per_kbyte": [4000.0, 4000.0]})
    assert served(tables) == wanted(tables) != set()
    assert "dropped" not in tables
    assert {row["kind"] for row in tables["carried"]} == {"data", "ack", "control"}


def test_ages_are_exact_though_every_crossing_deviates() -> None:
    tables = two_links({"links.ms_per_kbyte_deviation": 100.0})
    published = {row["message"]: row["recorded_at"] for row in tables["published"]}
    took = [row["recorded_at"] - published[row["message"]] for row in tables["delivered"]]
    assert [row["age_s"] for row in tables["delivered"]] == pytest.approx(took)
    spread = (sum((each - 1.004) ** 2 for each in took) / len(took)) ** 0.5
    assert spread == pytest.approx(0.1 * 2**0.5, rel=0.25)


def test_estimates_are_the_truth_of_each_link_in_both_directions() -> None:
    scenario = load(BOUNDED)
    overlay = set_up(scenario).overlay
    told = {name: set_up(scenario).estimates(name) for name in overlay.brokers}
    means = set()
    for link in overlay.links:
        there, back = told[link.a][link.b], told[link.b][link.a]
        assert there == back
        assert there is not None
        assert (there.delay_s, there.deviation_s_per_byte) == (0.002, 20e-6)
        means.add(there.s_per_byte)
        assert outlook([there]).expected_s(50_000) == 0.002 + 50_000 * there.s_per_byte
    assert len(means) == len(overlay.links)
    assert 50e-6 <= min(means) < 55e-6
    assert 95e-6 < max(means) < 100e-6


# ---- what the policies make of it


@pytest.mark.parametrize("deadlines", ["publisher", "subscriber", "both"])
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_what_ends_ends_in_time_or_dropped_for_its_deadline(policy: str, deadlines: str) -> None:
    found = run(policy, deadlines, seconds=A_WHILE_S)
    assert found.delivery_ratio == found.on_time_ratio
    assert set(found.dropped) == {"expired", "unlikely"}
    assert found.in_flight == 0
    assert found.delivered + sum(found.dropped.values()) == found.expected


def test_only_the_policies_by_benefit_delete_early_if_told_so() -> None:
    assert set(run("eb", setting="fit").dropped) == {"expired", "unlikely"}
    for policy in ("fifo", "rl"):
        assert set(run(policy, setting="fit").dropped) == {"expired"}


def test_prices_count_where_subscribers_state_them() -> None:
    psd, ssd = run("eb"), run("eb", "subscriber")
    assert psd.earnings == psd.delivered
    assert ssd.delivered < ssd.earnings < 3 * ssd.delivered


@pytest.mark.parametrize("setting", ["literal", "fit"])
def test_benefit_first_delivers_more_than_first_come_and_that_more_than_the_most_urgent(
    setting: str,
) -> None:
    eb, fifo, rl = (run(policy, setting=setting) for policy in ("eb", "fifo", "rl"))
    assert eb.on_time_ratio > 1.5 * fifo.on_time_ratio
    assert fifo.on_time_ratio > 1.5 * rl.on_time_ratio
    assert rl.message_number < fifo.message_number < eb.message_number


def test_benefit_first_earns_several_times_as_much_where_subscribers_pay() -> None:
    eb, fifo, rl = (run(policy, "subscriber", "fit") for policy in ("eb", "fifo", "rl"))
    assert eb.earnings > 3 * fifo.earnings > 3 * rl.earnings


def test_policies_meet_the_same_messages() -> None:
    found = [run(policy, seconds=A_WHILE_S) for policy in POLICIES]
    assert len({(each.publications, each.expected) for each in found}) == 1
