"""`dcrd` where links are few: what a search costs, and that it still finds every way there is."""

from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import Tables, a_scenario, outcome, served, wanted

from tidings.sim.scenario import Scenario

LEAVES = 6


def a_run(links_ms: list[list[Any]], search: str, **changes: Any) -> Scenario:
    run = {"run.seconds": 2.0, "run.start_s": 2.0, "run.drain_s": 8.0}
    broker = {"broker.strategy": "dcrd", "broker.dcrd.search": search}
    tables = {name: changes.pop(name) for name in ("workload", "faults") if name in changes}
    topology = {"kind": "listed", "links_ms": links_ms}
    return a_scenario({**run, **broker, **changes}, topology=topology, **tables)


def sparse(size: int, chords: int, rng: Random) -> nx.Graph:
    """A tree, and a few links more."""
    graph = nx.Graph((f"b{n}", f"b{rng.randrange(n)}") for n in range(1, size))
    for _ in range(chords):
        graph.add_edge(*(f"b{n}" for n in rng.sample(range(size), 2)))
    for a, b in graph.edges:
        graph[a][b]["delay_ms"] = rng.uniform(10.0, 50.0)
    return graph


def listed(graph: nx.Graph) -> list[list[Any]]:
    return [[a, b, link["delay_ms"]] for a, b, link in graph.edges(data=True)]


def dark(links: list[tuple[str, str]], from_s: float = 2.0, to_s: float = 1e6) -> dict[str, Any]:
    return {"schedule": [{"from_s": from_s, "to_s": to_s, "link": list(link)} for link in links]}


def everybody(graph: nx.Graph, **wish: Any) -> dict[str, Any]:
    """Two speakers, to whom all others listen."""
    homes = sorted(graph)
    return {
        "publisher": [{"broker": b, "topic": b, "rate_per_s": 1.0} for b in homes[:2]],
        "subscriber": [{"broker": b, "topic": "+", "name": "s", **wish} for b in homes],
    }


def home(subscription: str) -> str:
    return subscription.partition("/")[0]


# ---- what it costs


def at_a_hub(search: str, exhausted: str) -> tuple[int, Tables]:
    """One message from n1 over n2 to n3, whose only link is dark for a second; n2 has leaves."""
    leaves = [["n2", f"leaf{n}", 10.0] for n in range(LEAVES)]
    scenario = a_run(
        [["n1", "n2", 10.0], ["n2", "n3", 10.0], *leaves],
        search,
        workload={
            "publisher": [{"broker": "n1", "topic": "t", "rate_per_s": 0.5, "phase_s": 0.5}],
            "subscriber": [{"broker": "n3", "topic": "t"}],
        },
        faults=dark([("n2", "n3")], 2.0, 3.0),
        **{"broker.exhausted": exhausted},
    )
    result, tables = outcome(scenario)
    return result.hops, tables


def test_a_message_waits_where_it_finds_its_destination_cut_off() -> None:
    hops, tables = at_a_hub("pruned", "retry")
    assert hops == 3  # to n2; to n3 in vain; and again after a pause
    [delivered] = tables["delivered"]
    assert 1.0 < delivered["age_s"] < 1.2
    assert "dropped" not in tables


def test_the_paper_s_search_visits_every_leaf_first() -> None:
    hops, tables = at_a_hub("paper", "drop")
    assert hops == 2 + 2 * LEAVES + 1  # and back to n1, where it ends
    assert [row["broker"] for row in tables["dropped"]] == ["n1"]


@settings(max_examples=20, deadline=None)
@given(st.integers(5, 9), st.integers(0, 4), st.integers(0, 10**6))
def test_a_pruned_search_never_sends_more_and_finds_what_the_paper_s_finds(
    size: int, chords: int, seed: int
) -> None:
    """Links fail for good, and nobody is told."""
    rng = Random(seed)
    graph = sparse(size, chords, rng)
    failed = [link for link in sorted(graph.edges) if rng.random() < 0.25]
    found = {}
    for search in ("pruned", "paper"):
        result, tables = outcome(
            a_run(
                listed(graph),
                search,
                workload=everybody(graph),
                faults=dark(failed),
                **{"broker.exhausted": "drop", "run.seconds": 1.0},
            )
        )
        found[search] = served(tables), result.hops
    assert found["pruned"][0] == found["paper"][0]
    assert found["pruned"][1] <= found["paper"][1]


# ---- everything arrives that can


@settings(max_examples=20, deadline=None)
@given(st.integers(5, 9), st.integers(0, 4), st.sampled_from([30.0, 1e6]), st.integers(0, 10**6))
def test_a_late_message_arrives_if_and_only_if_a_way_exists_or_comes_back(
    size: int, chords: int, deadline_ms: float, seed: int
) -> None:
    """Some links fail for good, some for three seconds; what is late is welcome all the same."""
    rng = Random(seed)
    graph = sparse(size, chords, rng)
    failed = [link for link in sorted(graph.edges) if rng.random() < 0.4]
    for_good = [link for link in failed if rng.random() < 0.4]
    schedule = dark(failed, 2.0, 5.0)["schedule"] + dark(for_good, 5.0)["schedule"]
    scenario = a_run(
        listed(graph),
        "pruned",
        workload=everybody(graph, deadline_ms=deadline_ms),
        faults={"schedule": schedule},
        **{"run.seconds": 1.0, "run.drain_s": 20.0},
    )
    _, tables = outcome(scenario)  # the checker sees that nothing is delivered twice
    alive = graph.copy()
    alive.remove_edges_from(for_good)
    homes = {row["message"]: row["broker"] for row in tables["published"]}
    reachable = {(m, s) for m, s in wanted(tables) if nx.has_path(alive, homes[m], home(s))}
    assert served(tables) == reachable


@pytest.mark.parametrize("seed", [1, 2])
def test_while_links_come_and_go_everything_arrives_with_few_packets(seed: int) -> None:
    graph = sparse(40, 6, Random(seed))
    packets, in_time = {}, {}
    for search in ("pruned", "paper"):
        scenario = a_run(
            listed(graph),
            search,
            workload=everybody(graph, deadline_ms=1000.0),
            **{"links.failure_probability": 0.04, "run.seconds": 20.0, "run.drain_s": 20.0},
        )
        result, tables = outcome(scenario)
        assert served(tables) == wanted(tables)
        packets[search] = result.hops / len(wanted(tables))
        in_time[search] = sum(row["age_s"] <= 1.0 for row in tables["delivered"])
    assert packets["pruned"] < 0.6 * packets["paper"]
    assert in_time["pruned"] >= in_time["paper"]
