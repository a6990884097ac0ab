"""Virtual time: whole runs of real brokers, and what must hold of every one of them."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.scenarios import a_scenario, outcome, served, wanted

from tidings.core.graphs.paths import shortest_from
from tidings.routing import ROUTERS
from tidings.scenarios.set_up import set_up
from tidings.scheduling import POLICIES
from tidings.sim.world import simulate


def line(**changes: Any) -> dict[str, Any]:
    """A publisher at b1, a subscriber at b3, and whatever a test adds."""
    return {
        "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 5.0, **changes}],
        "subscriber": [{"broker": "b3", "topic": "t", "name": "s"}],
    }


# ---- laws


RATES = st.sampled_from([0.0, 0.0, 0.05, 0.4])
CHANGES = st.fixed_dictionaries(
    {
        "run.seed": st.integers(0, 10**6),
        "topology": st.sampled_from(
            [
                {"kind": "full-mesh", "brokers": 4},
                {"kind": "random-degree", "brokers": 6, "degree": 2},
                {"kind": "random-degree", "brokers": 6, "degree": 3},
                {"kind": "harmony"},
                {"kind": "full-mesh", "brokers": 3, "delay_ms": [0.0, 0.0]},
            ]
        ),
        "links.loss_ratio": RATES,
        "links.failure_probability": RATES,
        "links.failure_epoch_s": st.sampled_from([0.1, 1.0]),
        "links.processing_ms": st.sampled_from([0.0, 3.0]),
        "links.ack": st.sampled_from(["travels", "instant"]),
        "faults.link_failures_per_hour": st.sampled_from([0.0, 1000.0]),
        "faults.link_outage_s": st.sampled_from([0.1, 2.0]),
        "faults.broker_failures_per_hour": st.sampled_from([0.0, 0.0, 600.0, 3000.0]),
        "faults.broker_outage_s": st.sampled_from([0.01, 0.3, 2.0]),
        "workload.arrivals": st.sampled_from(["periodic", "poisson"]),
        "workload.rate_per_s": st.sampled_from([2.0, 20.0]),
        "workload.late": st.sampled_from(["deliver", "drop"]),
        "workload.deadline_factor": st.sampled_from([0.5, 1.5, 5.0]),
        "workload.subscribe_probability": st.sampled_from([[0.3, 0.3], [1.0, 1.0]]),
        "broker.strategy": st.sampled_from(sorted(ROUTERS)),
        "broker.scheduling": st.sampled_from(sorted(POLICIES)),
        "broker.transmissions": st.integers(1, 3),
        "broker.estimates": st.sampled_from(["pinned", "measured"]),
        "broker.probe_every_s": st.sampled_from([0.3, 5.0]),
        "broker.probe_timeout_s": st.sampled_from([0.05, 0.3]),
        "broker.queue_parcels": st.sampled_from([1, 5, 10_000]),
        "broker.window_bytes": st.sampled_from([1, 1_000, 4_194_304]),
        "broker.ack_slack_s": st.sampled_from([0.0, 0.01]),
        "broker.benefit.delete": st.sampled_from(["benefit", "all", "none"]),
        "broker.benefit.lifetimes": st.sampled_from(["all", "unexpired"]),
        "broker.harmony.reroute": st.booleans(),
        "broker.harmony.recheck_s": st.sampled_from([0.3, 30.0]),
        "broker.report_lifetime_s": st.sampled_from([0.5, 180.0]),
        "broker.trace": st.sampled_from(["outcomes", "hops"]),
    }
)


SPEEDS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {},
        {"links.rate_kbit_per_s": 20.0},
        {"links.rate_kbit_per_s": 200.0},
        {"links.ms_per_kbyte": [50.0, 1000.0], "links.ms_per_kbyte_deviation": 100.0},
    ]
)
LOADS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}] * 3
    + [
        {
            "workload.kind": "content",
            "workload.content.publishers": 2,
            "workload.content.rate_per_minute": 600.0,
            "workload.content.subscriber_brokers": 3,
            "workload.content.subscribers_per_broker": 4,
            "workload.content.deadlines": deadlines,
            "workload.content.publisher_deadline_s": [0.02, 0.5],
            "workload.content.subscriber_deadline_s": [0.1, 0.3, 1.0],
        }
        for deadlines in ("publisher", "subscriber", "both")
    ]
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CHANGES, SPEEDS, LOADS)
def test_the_laws_hold_whatever_breaks_under_every_strategy_and_policy(
    changes: dict[str, Any], speed: dict[str, Any], load: dict[str, Any]
) -> None:
    """The checkers watch the run; beside them, the rows and the result must tell one story."""
    scenario = a_scenario({"run.seconds": 2.0, "run.drain_s": 1.0, **changes, **speed, **load})
    result, tables = outcome(scenario)
    assert result.publications == len(tables.get("published", ()))
    assert result.deliveries == len(served(tables))
    sent = [row["frames"] for row in tables["carried"] if row["kind"] in ("data", "repeat")]
    assert result.hops == sum(sent)
    for table, rows in tables.items():
        times = [row["recorded_at"] for row in rows]
        assert times == sorted(times), table
        assert 0.0 <= times[0] <= times[-1] <= 4.0, table


def test_without_trouble_everything_arrives_in_the_time_of_the_shortest_path() -> None:
    for strategy in ("d-tree", "flooding"):
        scenario = a_scenario({"broker.strategy": strategy, "topology.brokers": 6})
        result, tables = outcome(scenario)
        assert served(tables) == wanted(tables)
        assert len(wanted(tables)) == result.publications * 5
        assert "dropped" not in tables
        delays = set_up(scenario).overlay.delays
        home = {r["message"]: r for r in tables["published"]}
        for row in tables["delivered"]:
            shortest = shortest_from(delays, home[row["message"]]["broker"])
            assert row["age_s"] == pytest.approx(shortest.distance[row["broker"]])
            assert row["recorded_at"] - home[row["message"]]["recorded_at"] == pytest.approx(
                row["age_s"]
            )


def test_the_same_seed_gives_the_same_digest_and_another_seed_another() -> None:
    changes = {"links.loss_ratio": 0.1, "faults.broker_failures_per_hour": 600.0}
    first = simulate(set_up(a_scenario(changes)))
    assert simulate(set_up(a_scenario(changes))) == first
    assert simulate(set_up(a_scenario({**changes, "run.seed": 2}))).digest != first.digest


def test_watching_the_progress_does_not_change_the_run() -> None:
    told: list[float] = []
    watched = simulate(set_up(a_scenario()), progress=told.append)
    assert watched == simulate(set_up(a_scenario()))
    assert told == sorted(told)
    assert told[-1] == 1.0


# ---- common random numbers


def test_in_a_full_mesh_the_fewest_links_and_the_direct_link_deliver_the_same_set() -> None:
    changes: dict[str, Any] = {
        "links.loss_ratio": 0.1,
        "links.failure_probability": 0.1,
        "faults.link_failures_per_hour": 600.0,
        "faults.link_outage_s": 0.5,
        "topology.brokers": 6,
        "broker.exhausted": "drop",
    }
    _, direct = outcome(a_scenario({**changes, "broker.strategy": "direct"}))
    _, tree = outcome(a_scenario({**changes, "broker.strategy": "r-tree"}))
    assert wanted(direct) == wanted(tree)
    assert served(direct) == served(tree)
    assert 0 < len(served(direct)) < len(wanted(direct))


def test_strategies_lose_the_same_messages_on_the_same_links() -> None:
    def lost(strategy: str) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]:
        changes = {"links.loss_ratio": 0.2, "links.ack": "instant", "broker.trace": "hops"}
        _, tables = outcome(a_scenario({**changes, "broker.strategy": strategy}))
        arrived = {(row["broker"], row["transmission"]) for row in tables["acknowledged"]}
        homes = {row["message"]: row["broker"] for row in tables["published"]}
        first = [r for r in tables["forwarded"] if homes[r["message"]] == r["broker"]]
        sent = {(r["message"], r["broker"], r["neighbour"]) for r in first}
        missing = [r for r in first if (r["broker"], r["transmission"]) not in arrived]
        return sent, {(r["message"], r["broker"], r["neighbour"]) for r in missing}

    sent, lost_directly = lost("direct")
    flooded, lost_in_the_flood = lost("flooding")
    assert sent <= flooded
    assert lost_directly
    assert lost_directly == lost_in_the_flood & sent


# ---- physics


def test_a_rate_makes_messages_wait_for_each_other() -> None:
    workload = line(payload_bytes=967, phase_s=0.0)  # with topic and header 1,000 bytes
    workload["publisher"] *= 3  # three at once
    scenario = a_scenario(
        {"links.rate_kbit_per_s": 80.0, "run.seconds": 0.2},
        topology={"kind": "full-mesh", "brokers": 3, "delay_ms": [50.0, 50.0]},
        workload=workload,
    )
    _, tables = outcome(scenario)
    ages = sorted(row["recorded_at"] - 1.0 for row in tables["delivered"])
    assert ages == pytest.approx([0.15, 0.25, 0.35])
    assert "dropped" not in tables


def test_remaining_lifetime_lets_the_urgent_pass_where_first_come_does_not() -> None:
    def order(scheduling: str) -> list[str]:
        deadlines = {"slow": 9000.0, "slower": 10_000.0, "urgent": 300.0}
        publishers = [
            {"broker": "b1", "topic": topic, "phase_s": 0.0, "payload_bytes": 1000}
            for topic in deadlines
        ]
        subscribers = [
            {"broker": "b2", "topic": topic, "deadline_ms": ms} for topic, ms in deadlines.items()
        ]
        scenario = a_scenario(
            {
                "links.rate_kbit_per_s": 80.0,
                "broker.scheduling": scheduling,
                "run.seconds": 0.5,
            },
            workload={"publisher": publishers, "subscriber": subscribers},
        )
        _, tables = outcome(scenario)
        return [row["subscriptions"][0].partition(":")[2] for row in tables["delivered"]]

    assert order("fifo") == ["slow", "slower", "urgent"]
    assert order("rl") == ["slow", "urgent", "slower"]  # the first has left when it comes


def test_processing_is_paid_by_data_at_every_broker() -> None:
    scenario = a_scenario(
        {"links.processing_ms": 7.0},
        topology={"kind": "full-mesh", "brokers": 3, "delay_ms": [50.0, 50.0]},
        workload=line(),
    )
    _, tables = outcome(scenario)
    assert {round(row["age_s"], 9) for row in tables["delivered"]} == {0.057}
    assert "dropped" not in tables


def test_a_link_is_as_slow_for_probes_as_for_messages() -> None:
    changes = {"links.processing_ms": 7.0, "broker.estimates": "measured", "broker.trace": "hops"}
    triangle = {"kind": "full-mesh", "brokers": 3, "delay_ms": [50.0, 50.0]}
    _, tables = outcome(a_scenario(changes, topology=triangle, workload=line()))
    assert {round(row["round_trip_s"], 9) for row in tables["probed"]} == {0.107}
    sent_at = {row["transmission"]: row["recorded_at"] for row in tables["forwarded"]}
    answers = tables["acknowledged"]
    assert {round(r["recorded_at"] - sent_at[r["transmission"]], 9) for r in answers} == {0.107}


def test_a_link_that_is_dark_loses_what_is_sent_into_it() -> None:
    faults = {"schedule": [{"from_s": 2.0, "to_s": 3.0, "link": ["b1", "b3"]}]}
    changes = {"broker.strategy": "direct", "broker.exhausted": "drop"}
    _, tables = outcome(a_scenario(changes, workload=line(), faults=faults))
    lost = {message for message, _ in wanted(tables) - served(tables)}
    in_the_dark = {r["message"] for r in tables["published"] if 2.0 <= r["recorded_at"] < 3.0}
    assert lost == in_the_dark
    assert {r["reason"] for r in tables["dropped"]} == {"unacknowledged"}


def test_with_retransmission_short_darkness_delays_and_does_not_lose() -> None:
    faults = {"schedule": [{"from_s": 2.0, "to_s": 2.1, "link": ["b1", "b3"]}]}
    changes = {"broker.strategy": "direct", "broker.transmissions": 20}
    _, tables = outcome(a_scenario(changes, workload=line(), faults=faults))
    assert served(tables) == wanted(tables)


# ---- brokers that die


DEATH = {"schedule": [{"from_s": 2.0, "to_s": 3.0, "broker": "b3"}]}


def test_a_dead_subscriber_broker_gets_nothing_and_after_its_return_everything() -> None:
    _, tables = outcome(a_scenario({"broker.exhausted": "drop"}, workload=line(), faults=DEATH))
    homes = {row["message"]: row["recorded_at"] for row in tables["published"]}
    missed = [homes[message] for message, _ in wanted(tables) - served(tables)]
    assert missed
    assert all(1.9 < at < 3.2 for at in missed)
    assert {"no-route"} <= {row["reason"] for row in tables["dropped"]}
    assert max(row["recorded_at"] for row in tables["delivered"]) > 4.5


def test_a_dead_publisher_broker_says_nothing_and_that_is_counted() -> None:
    faults = {"schedule": [{"from_s": 2.0, "to_s": 3.0, "broker": "b1"}]}
    result, tables = outcome(a_scenario(workload=line(), faults=faults))
    assert result.unpublished == 5
    assert result.publications == 15
    assert not [row for row in tables["published"] if 2.0 < row["recorded_at"] < 3.0]
    assert max(row["recorded_at"] for row in tables["delivered"]) > 4.5


@pytest.mark.parametrize("estimates", ["pinned", "measured"])
def test_a_broker_that_returns_after_minutes_does_not_act_in_the_past(estimates: str) -> None:
    faults = {"schedule": [{"from_s": 150.0, "to_s": 160.0, "broker": "b1"}]}
    changes = {"run.seconds": 200.0, "broker.estimates": estimates}
    workload = line(rate_per_s=1.0)
    _, tables = outcome(a_scenario(changes, workload=workload, faults=faults))
    for rows in tables.values():
        times = [row["recorded_at"] for row in rows]
        assert times == sorted(times)
    silent = [
        row for row in tables["carried"] if row["broker"] == "b1" and row["recorded_at"] == 150.0
    ]
    assert silent  # what it carried before it died is not lost to the account


def test_a_measuring_broker_that_returns_finds_its_way_at_once() -> None:
    faults = {"schedule": [{"from_s": 20.0, "to_s": 21.0, "broker": "b1"}]}
    changes = {"run.seconds": 30.0, "broker.estimates": "measured"}
    _, tables = outcome(a_scenario(changes, workload=line(), faults=faults))
    published = {row["message"]: row["recorded_at"] for row in tables["published"]}
    missed = [published[message] for message, _ in wanted(tables) - served(tables)]
    assert all(at < 21.5 for at in missed)
    assert [row for row in tables["published"] if 21.5 < row["recorded_at"] < 22.5]


def test_measured_links_are_known_to_all_half_a_second_after_the_start() -> None:
    changes = {"run.start_s": 0.5, "broker.estimates": "measured"}
    for brokers in (2, 6):
        sizes = {"topology.brokers": brokers, "workload.topics": 2}
        _, tables = outcome(a_scenario({**changes, **sizes}))
        assert served(tables) == wanted(tables) != set()
        assert "dropped" not in tables


def test_what_a_dying_broker_holds_is_dropped_with_that_reason() -> None:
    workload = {
        "publisher": [{"broker": "b1", "topic": "t", "rate_per_s": 100.0}],
        "subscriber": [{"broker": "b3", "topic": "t"}],
    }
    faults = {"schedule": [{"from_s": 2.0, "to_s": 3.0, "broker": "b1"}]}
    _, tables = outcome(a_scenario(workload=workload, faults=faults))
    assert "broker-failed" in {row["reason"] for row in tables["dropped"]}
