"""Was a lost message lost because nothing could have carried it? The outages that were planned say.

Emulated links fail exactly as `sim.faults.outages` plans them, in both worlds, so whether a way of
working links and brokers joined two brokers at an instant is known beforehand.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from pathlib import Path

import networkx as nx
from support.two_worlds import Account

from tidings.core.topology import Topology
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.faults import Interval, Outages
from tidings.sim.scenario import Scenario
from tidings.sim.workload import publications

Lost = tuple[float, str, str]  # published at, in seconds since the run began; topic, subscription


def cut_off_spells(overlay: Topology, broken: Outages, a: str, b: str) -> list[Interval]:
    """When no way joins two brokers, in seconds since the run began."""
    everything = [*broken.links.values(), *broken.brokers.values()]
    edges = {0.0, inf} | {edge for spells in everything for spell in spells for edge in spell}
    between = pairwise(sorted(edges))
    return [(start, end) for start, end in between if not _joined(overlay, broken, a, b, start)]


def _joined(overlay: Topology, broken: Outages, a: str, b: str, at: float) -> bool:
    graph = nx.Graph()
    graph.add_nodes_from(n for n in overlay.brokers if not _during(broken.brokers[n], at))
    graph.add_edges_from(
        (link.a, link.b)
        for link in overlay.links
        if {link.a, link.b} <= set(graph) and not _during(broken.links[link.a, link.b], at)
    )
    return a in graph and b in graph and bool(nx.has_path(graph, a, b))


def _during(spells: tuple[Interval, ...], at: float) -> bool:
    return any(start <= at < end for start, end in spells)


def lost_in_vain(path: Path, account: Account, needs_s: float) -> list[Lost]:
    """What a run of the scenario in this file lost although publisher and subscriber were joined
    from its publication on, for as long as a message needs."""
    scenario = load(path)
    overlay = set_up(scenario).overlay
    broken, published = set_up(scenario).outages, _published(scenario, overlay)
    found: list[Lost] = []
    for topic, number, subscription in account.lost:
        publisher, instants = published[topic]
        at, subscriber = instants[number], subscription.split("/")[0]
        spells = cut_off_spells(overlay, broken, publisher, subscriber)
        if not any(start < at + needs_s and at < end for start, end in spells):
            found.append((at, topic, subscription))
    return found


def _published(scenario: Scenario, overlay: Topology) -> dict[str, tuple[str, list[float]]]:
    """Of each topic, which has one publisher: its broker, and when it says what it says."""
    return {
        speaker.topic: (speaker.broker, [said.at for said in publications(scenario, i, speaker)])
        for i, speaker in enumerate(set_up(scenario).load.publishers)
    }
