"""How long do the links of a real network take, going by the map?

The Internet Topology Zoo draws operators' networks as GML with coordinates. A link's delay is the
great-circle distance at two thirds of the speed of light (light in glass) times a detour factor,
for cables follow roads and coasts. The zoo's files have gaps, and these rules fill them:

- A node without coordinates is placed at the mean of its located neighbours, round by round, so a
  chain of such nodes is placed from its ends inwards; where nothing is located, it is an error.
- Links that double another are one link; links from a node to itself are left out.
- Names are the labels, with `-` for what is neither letter, digit, `_` nor `.`; a node without a
  label, or with the label `None`, is called `node-<id>`; a name taken already gets `-2`, `-3`, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import unescape
from math import atan2, cos, hypot, isfinite, radians, sin
from typing import TypeAlias

from tidings.core.errors import ConfigError
from tidings.core.topology.gml_reader import Block, parse
from tidings.core.topology.graph import BrokerId, Topology, connect

Point: TypeAlias = tuple[float, float, float]  # on the unit sphere: means need no care at ±180°
Near: TypeAlias = Mapping[int, list[int]]

EARTH_RADIUS_KM = 6371.0
LIGHT_IN_FIBRE_KM_PER_S = 299_792.458 * 2 / 3


def from_gml(
    text: str,
    detour_factor: float = 1.5,
    minimum_delay_ms: float = 0.1,
    source: str = "GML text",
) -> Topology:
    """The network that a GML text draws; `source` is its name in errors.

    The least delay is for nodes of one city, and for those placed on their only neighbour.
    """
    if not (isfinite(detour_factor) and detour_factor >= 1):
        raise ConfigError(source, "detour_factor", detour_factor, "a finite number from 1 up")
    graph = _the_graph(parse(text, source), source)
    nodes = _nodes(graph, source)
    near = _neighbours(graph, nodes, source)
    points, names = _placed(nodes, near, source), _names(nodes)
    links = []
    for a, b in [(node, other) for node in near for other in near[node] if node < other]:
        path_km = EARTH_RADIUS_KM * _angle(points[a], points[b]) * detour_factor
        links.append(
            (names[a], names[b], max(path_km / LIGHT_IN_FIBRE_KM_PER_S, minimum_delay_ms / 1000))
        )
    return connect(list(names.values()), links, source)


def _the_graph(top: Block, source: str) -> Block:
    for key, value in top:
        if key == "graph" and isinstance(value, list):
            return value
    raise ConfigError(source, "graph", None, "a GML text with one `graph [ ... ]`")


def _nodes(graph: Block, source: str) -> dict[int, dict[str, object]]:
    nodes: dict[int, dict[str, object]] = {}
    for number, node in enumerate(_blocks(graph, "node"), start=1):
        identity = node.get("id")
        if not isinstance(identity, int) or identity in nodes:
            accepted = f"a whole number of its own for the {number}. node"
            raise ConfigError(source, "node.id", identity, accepted)
        nodes[identity] = node
    return nodes


def _neighbours(graph: Block, nodes: Mapping[int, object], source: str) -> Near:
    near: dict[int, set[int]] = {node: set() for node in nodes}
    for edge in _blocks(graph, "edge"):
        a, b = (_end(edge, side, nodes, source) for side in ("source", "target"))
        if a != b:
            near[a].add(b)
            near[b].add(a)
    return {node: sorted(others) for node, others in near.items()}


def _end(edge: dict[str, object], side: str, nodes: Mapping[int, object], source: str) -> int:
    end = edge.get(side)
    if not isinstance(end, int) or end not in nodes:
        raise ConfigError(source, f"edge.{side}", end, "the id of one of the nodes")
    return end


def _blocks(graph: Block, key: str) -> Iterable[dict[str, object]]:
    return (dict(value) for name, value in graph if name == key and isinstance(value, list))


def _names(nodes: Mapping[int, Mapping[str, object]]) -> dict[int, BrokerId]:
    names: dict[int, BrokerId] = {}
    taken: set[BrokerId] = set()
    for identity, node in nodes.items():
        label = unescape(str(node.get("label", "")))
        label = "" if label == "None" else label  # so the zoo writes that there is none
        name = re.sub(r"[^\w.]+", "-", label).strip("-") or f"node-{identity}"
        candidate, copy = name, 2
        while candidate in taken:
            candidate, copy = f"{name}-{copy}", copy + 1
        taken.add(candidate)
        names[identity] = candidate
    return names


def _placed(nodes: Mapping[int, Mapping[str, object]], near: Near, source: str) -> dict[int, Point]:
    located = {i: _point(node, source) for i, node in nodes.items() if _is_located(node)}
    while len(located) < len(nodes):
        fresh = {
            node: _mean([located[other] for other in near[node] if other in located])
            for node in nodes
            if node not in located and any(other in located for other in near[node])
        }
        if not fresh:
            lost = next(node for node in nodes if node not in located)
            label = nodes[lost].get("label", lost)
            accepted = "a node with Latitude and Longitude, or linked by way of others to one"
            raise ConfigError(source, "node", label, accepted)
        located |= fresh
    return located


def _is_located(node: Mapping[str, object]) -> bool:
    return "Latitude" in node and "Longitude" in node


def _point(node: Mapping[str, object], source: str) -> Point:
    latitude, longitude = (
        radians(_degrees(node, key, limit, source)) for key, limit in _LIMIT_DEGREES.items()
    )
    return (cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude))


_LIMIT_DEGREES = {"Latitude": 90, "Longitude": 180}


def _degrees(node: Mapping[str, object], key: str, limit: int, source: str) -> float:
    value = node[key]
    if not isinstance(value, int | float) or not -limit <= value <= limit:
        raise ConfigError(source, f"node.{key}", value, f"degrees from -{limit} to {limit}")
    return value


def _mean(points: list[Point]) -> Point:
    """The direction of the mean; its length does not matter to `_angle`."""
    x, y, z = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    return (x, y, z)


def _angle(u: Point, v: Point) -> float:
    """The angle between two directions, exact for near and far points alike."""
    cross = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    return atan2(hypot(*cross), u[0] * v[0] + u[1] * v[1] + u[2] * v[2])
