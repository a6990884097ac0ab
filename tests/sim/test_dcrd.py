"""`dcrd` in whole runs: who gets what when links and brokers fail, and what it costs."""

from collections import Counter
from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TRIANGLE, connected
from support.scenarios import Tables, a_scenario, outcome, served, wanted
from support.traces import tables_of

from tidings.broker.frames import Data, Gossip
from tidings.core.errors import CheckFailed
from tidings.core.parcel import Parcel
from tidings.core.trace import TABLES
from tidings.routing import ROUTERS
from tidings.routing.base import Hop, NeverReroutes, Route, View
from tidings.scenarios.set_up import set_up
from tidings.sim.scenario import Scenario
from tidings.sim.world import simulate
from tidings.traces.outcomes import outcomes

TIMERS: dict[str, dict[str, Any]] = {
    "paper": {"links.ack": "instant", "broker.ack_timer": 1.0, "broker.ack_slack_s": 0.0},
    "physical": {"links.ack": "travels", "broker.ack_timer": 2.0, "broker.ack_slack_s": 0.01},
}
START_S = 2.0  # of publishing, in all runs below


def a_run(changes: dict[str, Any] | None = None, **tables: Any) -> Scenario:
    """The small scenario under `dcrd`."""
    run = {"seconds": 4.0, "start_s": START_S, "drain_s": 10.0}
    return a_scenario({"broker.strategy": "dcrd", **(changes or {})}, **{"run": run, **tables})


def speaker(broker: str = "b1", **fields: Any) -> dict[str, Any]:
    return {"broker": broker, "topic": "t", "rate_per_s": 5.0, "phase_s": 0.01, **fields}


def listener(broker: str, **fields: Any) -> dict[str, Any]:
    return {"broker": broker, "topic": "t", "name": "s", **fields}


def load(*listeners: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A publisher at b1, and these subscribers."""
    return {"publisher": [speaker(**fields)], "subscriber": list(listeners)}


def silent(from_s: float, to_s: float, *links: tuple[str, str]) -> dict[str, Any]:
    """Links that are dark for a while; nobody is told."""
    return {"schedule": [{"from_s": from_s, "to_s": to_s, "link": list(link)} for link in links]}


def cut_off(broker: str, others: tuple[str, ...], from_s: float, to_s: float) -> dict[str, Any]:
    return silent(from_s, to_s, *((broker, other) for other in others))


def reasons(tables: Tables) -> set[str]:
    return {row["reason"] for row in tables.get("dropped", ())}


def judged(scenario: Scenario) -> Counter[str]:
    """What the pipeline says of a run: how many had which outcome."""
    batches: dict[str, list[Any]] = {}
    simulate(
        set_up(scenario), sink=lambda table, batch: batches.setdefault(table, []).append(batch)
    )
    empty = tables_of({})
    tables = {
        name: empty[name].from_batches(batches[name]) if name in batches else empty[name]
        for name in TABLES
    }
    return Counter(outcomes(tables)["outcome"].to_pylist())


# ---- the guarantee


@st.composite
def broken_overlays(draw: st.DrawFn) -> tuple[nx.Graph, set[tuple[str, str]]]:
    """A connected overlay of four to seven brokers, and the links of it that fail for good."""
    size, rng = draw(st.integers(4, 7)), Random(draw(st.integers(0, 10**6)))
    graph = nx.Graph((f"b{n}", f"b{rng.randrange(n)}") for n in range(1, size))
    for _ in range(draw(st.integers(0, 10))):
        a, b = rng.sample(range(size), 2)
        graph.add_edge(f"b{a}", f"b{b}")
    for a, b in graph.edges:
        graph[a][b]["delay_ms"] = rng.uniform(10.0, 50.0)
    failed = draw(st.sets(st.sampled_from(sorted(graph.edges)), max_size=graph.size()))
    return graph, failed


@pytest.mark.parametrize("timer", sorted(TIMERS))
@pytest.mark.parametrize("transmissions", [1, 2])
@settings(max_examples=25, deadline=None)
@given(
    broken_overlays(),
    st.sampled_from(["exact", "theorem-1"]),
    st.sampled_from(["pruned", "paper"]),
    st.booleans(),
)
def test_a_message_arrives_if_and_only_if_a_live_path_exists(
    timer: str,
    transmissions: int,
    broken: tuple[nx.Graph, set[tuple[str, str]]],
    order: str,
    search: str,
    hurried: bool,
) -> None:
    """No link comes back, nobody is told, and the estimates are those of healthy links."""
    graph, failed = broken
    brokers = sorted(graph)
    speakers = [speaker(b, topic=b, rate_per_s=1.0, phase_s=None) for b in brokers[:3]]
    wish = {"deadline_ms": 60.0} if hurried else {}
    listeners = [listener(b, topic="+", **wish) for b in brokers]
    scenario = a_run(
        {
            **TIMERS[timer],
            "broker.transmissions": transmissions,
            "broker.dcrd.order": order,
            "broker.dcrd.search": search,
            "broker.exhausted": "drop",
            "run.seconds": 2.0,
            "run.drain_s": 30.0,
        },
        topology={
            "kind": "listed",
            "links_ms": [[a, b, d["delay_ms"]] for a, b, d in graph.edges(data=True)],
        },
        workload={"publisher": speakers, "subscriber": listeners},
        faults=silent(START_S, 1e6, *sorted(failed)),
    )
    _, tables = outcome(scenario)
    alive = graph.copy()
    alive.remove_edges_from(failed)
    homes = {row["message"]: row["broker"] for row in tables["published"]}
    for message, subscription in wanted(tables):
        lives = nx.has_path(alive, homes[message], subscription.partition("/")[0])
        assert ((message, subscription) in served(tables)) == lives
    assert reasons(tables) <= {"exhausted"}
    lost = {(r["message"], b) for r in tables.get("dropped", ()) for b in r["destinations"]}
    missing = {(m, s.partition("/")[0]) for m, s in wanted(tables) - served(tables)}
    assert lost == missing  # and nothing that arrived is said to be lost


@pytest.mark.parametrize("timer", sorted(TIMERS))
def test_while_links_come_and_go_everything_arrives(timer: str) -> None:
    scenario = a_run(
        {
            **TIMERS[timer],
            "run.seconds": 180.0,
            "links.failure_probability": 0.1,
            "links.loss_ratio": 0.0001,
            "workload.rate_per_s": 1.0,
            "workload.subscribe_probability": [0.2, 0.6],
            "workload.topics": 10,
        },
        topology={"kind": "random-degree", "brokers": 20, "degree": 5},
    )
    result, tables = outcome(scenario)
    assert result.publications == 1800
    assert len(wanted(tables)) > 4000
    assert served(tables) == wanted(tables)


def test_the_guarantee_needs_no_sending_list() -> None:
    """No broker ever hears what another expects of itself: links alone tell whom to try."""
    net = connected(*TRIANGLE, strategy="dcrd", loses=lambda a, b, frame: isinstance(frame, Gossip))
    wish = net.subscribe("b3")
    net.run(1.0)
    net.loses = lambda a, b, frame: isinstance(frame, Gossip) or {a, b} == {"b1", "b3"}
    message = net.publish("b1")
    net.run(1.0)
    assert net.delivered == [(wish, message)]
    assert [(a, b) for _, a, b, f in net.said if isinstance(f, Data)] == [
        ("b1", "b3"),
        ("b1", "b2"),
        ("b2", "b3"),
    ]


# ---- what it costs


def gossip(tables: Tables) -> list[dict[str, Any]]:
    return [row for row in tables["carried"] if row["kind"] == "gossip"]


@pytest.mark.parametrize("filter", ["last-resort", "paper"])
def test_the_exchange_ends_when_nothing_changes(filter: str) -> None:
    changes = {"run.seconds": 300.0, "broker.dcrd.filter": filter, "topology.brokers": 8}
    _, tables = outcome(a_run({**changes, "workload.rate_per_s": 1.0}))
    assert sum(row["frames"] for row in gossip(tables)) > 8 * 7
    assert {row["recorded_at"] for row in gossip(tables)} == {60.0}
    assert max(row["recorded_at"] for row in tables["carried"]) > 300.0


def test_while_links_are_healthy_every_copy_crosses_one_link_once() -> None:
    result, tables = outcome(a_run())
    assert served(tables) == wanted(tables)
    assert {row["kind"] for row in tables["carried"]} == {"data", "ack", "control", "gossip"}
    assert result.hops == len(served(tables))  # a mesh of fast links: each by its own
    assert "dropped" not in tables


def test_two_transmissions_are_made_before_a_neighbour_is_given_up() -> None:
    for transmissions in (1, 2, 3):
        changes = {"broker.transmissions": transmissions, "broker.trace": "hops"}
        faults = silent(START_S, 1e6, ("b1", "b3"))
        _, tables = outcome(a_run(changes, workload=load(listener("b3")), faults=faults))
        assert served(tables) == wanted(tables)
        sent = Counter((r["message"], r["broker"], r["neighbour"]) for r in tables["forwarded"])
        messages = {row["message"] for row in tables["published"]}
        assert {sent[message, "b1", "b3"] for message in messages} == {transmissions}
        attempts = [r["attempt"] for r in tables["forwarded"] if r["neighbour"] == "b3"]
        assert max(attempts) == transmissions
        kinds = Counter(row["kind"] for row in tables["carried"])
        assert ("repeat" in kinds) == (transmissions > 1)


# ---- a destination that cannot be reached for a while


def ten_seconds_alone(exhausted: str, **wish: Any) -> Scenario:
    """b3 is cut off for ten of the seconds in which b1 speaks to it and to b4."""
    return a_run(
        {"broker.exhausted": exhausted, "run.seconds": 14.0, "run.drain_s": 40.0},
        workload=load(listener("b3", **wish), listener("b4")),
        faults=cut_off("b3", ("b1", "b2", "b4"), 3.0, 13.0),
    )


def test_with_drop_what_cannot_reach_it_is_dropped_as_exhausted() -> None:
    _, tables = outcome(ten_seconds_alone("drop"))
    lost = {message for message, _ in wanted(tables) - served(tables)}
    assert {s for _, s in wanted(tables) - served(tables)} == {"b3/s:t"}
    assert 45 <= len(lost) <= 50
    assert reasons(tables) == {"exhausted"}
    assert lost == {row["message"] for row in tables["dropped"]}


def test_with_retry_it_gets_everything_once_it_is_back() -> None:
    _, tables = outcome(ten_seconds_alone("retry"))
    assert served(tables) == wanted(tables)
    assert len(wanted(tables)) == 2 * 70
    assert "dropped" not in tables
    late = [r for r in tables["delivered"] if r["age_s"] > 1.0]
    assert {row["broker"] for row in late} == {"b3"}
    assert len(late) >= 40
    assert all(row["recorded_at"] > 13.0 for row in late)
    assert max(row["recorded_at"] for row in late) < 13.0 + 12.0


def test_the_end_of_the_contract_ends_the_retries() -> None:
    _, tables = outcome(ten_seconds_alone("retry", deadline_ms=4000.0, late="drop"))
    missing = wanted(tables) - served(tables)
    assert {s for _, s in missing} == {"b3/s:t"}
    assert 25 <= len(missing) <= 40  # the younger ones are tried again in time
    assert reasons(tables) == {"exhausted"}  # no further try would have been in time
    assert {m for m, _ in missing} == {row["message"] for row in tables["dropped"]}
    assert all(row["age_s"] <= 4.0 for row in tables["delivered"])


def test_retries_go_on_when_the_brokers_have_noticed_that_it_is_gone() -> None:
    """Probes tell that the links are down, so that no way is known: still it is tried again."""
    probing = {
        "broker.estimates": "measured",
        "broker.probe_every_s": 1.0,
        "broker.probe_timeout_s": 0.5,
    }
    scenario = a_run(
        {**probing, "broker.exhausted": "retry", "run.seconds": 14.0, "run.drain_s": 60.0},
        workload=load(listener("b3"), listener("b4")),
        faults=cut_off("b3", ("b1", "b2", "b4"), 3.0, 13.0),
    )
    _, tables = outcome(scenario)
    assert [r for r in tables["link_changed"] if r["neighbour"] == "b3" and not r["up"]]
    assert reasons(tables) == set()
    assert served(tables) == wanted(tables)


def test_what_a_destination_may_have_forgotten_is_not_retried() -> None:
    """What b3 took just before the link went dark was not acknowledged, so b1 tries again: but when
    the link is back, after 300 s, b3 would not know that it has had it."""
    scenario = a_run(
        {"broker.exhausted": "retry", "run.seconds": 1.0, "run.drain_s": 400.0},
        topology={"kind": "listed", "links_ms": [["b1", "b3", 50.0]]},
        workload=load(listener("b3"), rate_per_s=20.0, phase_s=0.0),
        faults=silent(2.42, 300.0, ("b1", "b3")),
    )
    _, tables = outcome(scenario)  # the checker watches that nothing is delivered twice
    assert reasons(tables) == {"exhausted"}
    assert 0 < len(served(tables)) < len(wanted(tables))
    assert min(row["recorded_at"] for row in tables["dropped"]) > 0.75 * 120.0  # of remember_s


# ---- a deadline shorter than any path


def hopeless(late: str) -> Scenario:
    """The nearest broker is 10 ms away, the deadline is one."""
    workload = load(listener("b2"), listener("b3"), listener("b4"), deadline_ms=1.0, late=late)
    return a_run(workload=workload, faults=silent(START_S, 1e6, ("b1", "b2")))


def test_what_must_be_late_is_delivered_late_and_by_the_best_order() -> None:
    _, tables = outcome(hopeless("deliver"))
    assert served(tables) == wanted(tables)
    easy = load(listener("b2"), listener("b3"), listener("b4"))
    _, unhurried = outcome(a_run(workload=easy, faults=silent(START_S, 1e6, ("b1", "b2"))))

    def ages(tables: Tables) -> list[tuple[str, float]]:
        return sorted((row["broker"], round(row["age_s"], 9)) for row in tables["delivered"])

    assert ages(tables) == ages(unhurried)
    assert judged(hopeless("deliver")) == {"late": len(wanted(tables))}


def test_what_must_be_late_and_is_to_be_dropped_then_expires() -> None:
    _, tables = outcome(hopeless("drop"))
    assert served(tables) == set()
    assert reasons(tables) == {"expired"}
    assert judged(hopeless("drop")) == {"dropped": len(wanted(tables))}


# ---- a destination that dies while messages are on their way


@pytest.mark.parametrize("estimates", ["pinned", "measured"])
@pytest.mark.parametrize("to_s", [4.0, 1e6])
def test_the_death_of_one_destination_does_not_disturb_the_others(
    estimates: str, to_s: float
) -> None:
    faults = {"schedule": [{"from_s": 3.0, "to_s": to_s, "broker": "b4"}]}
    workload = load(*(listener(f"b{n}") for n in range(2, 7)), rate_per_s=100.0)
    scenario = a_run(
        {"broker.estimates": estimates, "broker.exhausted": "drop"},
        topology={"kind": "random-degree", "brokers": 6, "degree": 3},
        workload=workload,
        faults=faults,
    )
    _, tables = outcome(scenario)  # the checker sees that nothing vanishes
    homes = {row["message"]: row["recorded_at"] for row in tables["published"]}
    missing = wanted(tables) - served(tables)
    for message, subscription in missing:
        assert subscription == "b4/s:t" or homes[message] > 2.5
        # others lose at most what the dying broker held for them
    held = [r for r in tables["dropped"] if r["reason"] == "broker-failed"]
    for message, subscription in missing:
        if subscription != "b4/s:t":
            broker = subscription.partition("/")[0]
            assert any(r["message"] == message and broker in r["destinations"] for r in held)
    assert reasons(tables) <= {"exhausted", "no-route", "broker-failed"}
    assert {s for _, s in missing} >= {"b4/s:t"}
    if to_s == 4.0:
        assert [r for r in tables["delivered"] if r["broker"] == "b4" and r["recorded_at"] > 5.0]


# ---- chance


def test_a_run_is_the_same_again() -> None:
    changes = {"links.failure_probability": 0.1, "broker.exhausted": "retry"}
    first = simulate(set_up(a_run(changes)))
    assert simulate(set_up(a_run(changes))) == first


class _PingPong(NeverReroutes):
    """A strategy that never tires of one link."""

    def route(self, parcel: Parcel, view: View, now: float) -> Route:
        there = "b2" if view.me == "b1" else "b1"
        return Route((Hop(there, parcel.destinations),))


def test_forwarding_that_loops_is_noticed_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROUTERS, "dcrd", lambda options: _PingPong())
    with pytest.raises(CheckFailed, match="b1 → b2 again: b1 → b2 → b1 → b2"):
        simulate(set_up(a_run(workload=load(listener("b3")))))
