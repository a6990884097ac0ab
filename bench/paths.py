"""How fast are our shortest paths beside those of networkx and rustworkx?

Each line is the time for one broker to work out its best path to every other one (or its five best
to one other) from the dicts of a view; networkx and rustworkx have their own graph ready, except
where `from a view` says that it is built first, as after a change of the network. `ratio` is the
peer's time divided by ours: above 1 we are faster.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator
from itertools import islice

import networkx as nx
import rustworkx as rx
from _report import Line, line, run

from tidings.core.graphs.paths import Graph, k_shortest, shortest_from
from tidings.core.rng import Draws
from tidings.core.topology import Topology, full_mesh, random_degree

K = 5
REPEATS = 5


def measured(quick: bool) -> list[Line]:
    seconds = 0.01 if quick else 0.2
    return [entry for name, overlay in overlays(quick) for entry in compare(name, overlay, seconds)]


def overlays(quick: bool) -> Iterator[tuple[str, Topology]]:
    draws = Draws(seed=7)
    yield "20 brokers, mesh", full_mesh(20, draws)
    yield "20 brokers, degree 5", random_degree(20, 5, draws)
    if not quick:
        yield "160 brokers, degree 8", random_degree(160, 8, draws)
        yield "160 brokers, mesh", full_mesh(160, draws)


def compare(name: str, overlay: Topology, seconds: float) -> Iterator[Line]:
    source, target = overlay.brokers[0], overlay.brokers[-1]
    graph, in_networkx, in_rustworkx = (
        overlay.delays,
        to_networkx(overlay),
        to_rustworkx(overlay.delays),
    )

    def searched(peer: str, ours: Callable[[], object], theirs: Callable[[], object]) -> Line:
        ours_us, peer_us = best_us(ours, seconds), best_us(theirs, seconds)
        return line(f"{name}: {peer}", ours_us, "microseconds", peer_us, peer_us / ours_us)

    yield searched(
        "networkx",
        lambda: shortest_from(graph, source),
        lambda: nx.single_source_dijkstra(in_networkx, source),
    )
    yield searched(
        "rustworkx",
        lambda: shortest_from(graph, source),
        lambda: rx.dijkstra_shortest_paths(in_rustworkx, 0, weight_fn=float),
    )
    yield searched(
        "rustworkx from a view",
        lambda: shortest_from(graph, source),
        lambda: rx.dijkstra_shortest_paths(to_rustworkx(graph), 0, weight_fn=float),
    )
    yield searched(
        f"networkx, {K} shortest to one",
        lambda: k_shortest(graph, source, target, K),
        lambda: list(islice(nx.shortest_simple_paths(in_networkx, source, target, "weight"), K)),
    )


def to_networkx(overlay: Topology) -> nx.Graph:
    graph = nx.Graph()
    graph.add_weighted_edges_from((link.a, link.b, link.delay_s) for link in overlay.links)
    return graph


def to_rustworkx(view: Graph) -> rx.PyDiGraph:
    graph = rx.PyDiGraph()
    index = dict(zip(view, graph.add_nodes_from(list(view)), strict=True))
    graph.add_edges_from(
        [(index[a], index[b], weight) for a, near in view.items() for b, weight in near.items()]
    )
    return graph


def best_us(call: Callable[[], object], seconds: float) -> float:
    """The best of a few repeats, each long enough to be worth timing."""
    timer = timeit.Timer(call)
    number = max(1, int(seconds / max(timer.timeit(1), 1e-7)))
    return min(timer.repeat(REPEATS, number)) / number * 1e6


if __name__ == "__main__":
    run("paths", __doc__, measured)
