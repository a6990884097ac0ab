"""What does an internet of transit and stub networks look like?

The Georgia Tech model (Calvert, Doar and Zegura, "Modeling Internet Topology", 1997; the pruning
paper's section 8): transit domains are linked to one another, each transit node carries a few stub
domains, and every domain is a random connected graph, drawn again until it is in one piece. The
defaults give the paper's 100 nodes in 5 autonomous systems of 20, reading one system as a transit
domain of 2 nodes with 3 stubs of 3 nodes each: 5 * 2 * (1 + 3 * 3). The paper gives neither the
split within a system nor the densities nor the delays: those are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from tidings.core.errors import ConfigError
from tidings.core.rng import Draws
from tidings.core.topology.generators import first_success
from tidings.core.topology.graph import (
    BrokerId,
    DelayRange,
    Topology,
    broker_names,
    connect,
    drawn_links,
    reaches_all,
)

Count = Annotated[int, Meta(ge=1)]
Extra = Annotated[int, Meta(ge=0)]
Probability = Annotated[float, Meta(ge=0.0, le=1.0)]
Pair: TypeAlias = tuple[BrokerId, BrokerId]
Domain: TypeAlias = tuple[BrokerId, ...]


class TransitStub(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The model's parameters; delays are drawn per link from the range of its level."""

    transit_domains: Count = 5
    transit_nodes_per_domain: Count = 2
    stubs_per_transit_node: Extra = 3
    nodes_per_stub: Count = 3
    extra_transit_stub_links: Extra = 0
    extra_stub_stub_links: Extra = 0
    domain_link_probability: Probability = 1.0
    transit_link_probability: Probability = 0.6
    stub_link_probability: Probability = 0.42
    domain_delay_ms: DelayRange = (20.0, 50.0)
    transit_delay_ms: DelayRange = (10.0, 20.0)
    access_delay_ms: DelayRange = (5.0, 10.0)
    stub_delay_ms: DelayRange = (1.0, 5.0)


class _Domains(Struct, frozen=True):
    """Who belongs where; `stubs` holds each stub domain with the transit node that carries it."""

    names: Domain
    transits: tuple[Domain, ...]
    stubs: tuple[tuple[BrokerId, Domain], ...]


def transit_stub(parameters: TransitStub, draws: Draws, source: str = "transit-stub") -> Topology:
    """The transit brokers come first in the names, domain by domain, then the stubs."""
    domains = _domains(parameters, source)
    levels = {
        "domain_delay_ms": _between_domains(parameters, domains, draws, source),
        "transit_delay_ms": _within(domains.transits, "transit", parameters, draws, source),
        "access_delay_ms": _access(parameters, domains, draws, source),
        "stub_delay_ms": _within((s for _, s in domains.stubs), "stub", parameters, draws, source),
    }
    links = []
    for field, pairs in levels.items():
        links += drawn_links(pairs, getattr(parameters, field), draws, source, field)
    return connect(domains.names, links, source)


def _domains(parameters: TransitStub, source: str) -> _Domains:
    p = parameters
    carriers = p.transit_domains * p.transit_nodes_per_domain
    stub_count = carriers * p.stubs_per_transit_node
    names = broker_names(carriers + stub_count * p.nodes_per_stub, source)
    stubs = tuple(_blocks(names[carriers:], p.nodes_per_stub))
    return _Domains(
        names,
        tuple(_blocks(names[:carriers], p.transit_nodes_per_domain)),
        tuple((names[i // p.stubs_per_transit_node], stub) for i, stub in enumerate(stubs)),
    )


def _blocks(names: Domain, size: int) -> Iterator[Domain]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def _between_domains(
    parameters: TransitStub, domains: _Domains, draws: Draws, source: str
) -> list[Pair]:
    """A random graph of whole domains, each link between one drawn node of either."""
    by_name = {domain[0]: domain for domain in domains.transits}
    joined = _random_connected(
        tuple(by_name), parameters.domain_link_probability, "domain", draws, source
    )
    return [
        (_one(by_name[a], draws, "gateway", a, b), _one(by_name[b], draws, "gateway", b, a))
        for a, b in joined
    ]


def _within(
    domains: Iterable[Domain], level: str, parameters: TransitStub, draws: Draws, source: str
) -> list[Pair]:
    probability = getattr(parameters, f"{level}_link_probability")
    return [
        pair
        for domain in domains
        for pair in _random_connected(domain, probability, level, draws, source)
    ]


def _access(parameters: TransitStub, domains: _Domains, draws: Draws, source: str) -> list[Pair]:
    """One link from each stub to its transit node, then the extra ones, never doubled."""
    uplinks = [(carrier, _one(stub, draws, "uplink", stub[0])) for carrier, stub in domains.stubs]
    transit = [node for domain in domains.transits for node in domain]
    stub_of = {node: stub for _, stub in domains.stubs for node in stub}
    to_transit = sorted(set(product(transit, stub_of)) - set(uplinks))
    to_stub = [(a, b) for a, b in combinations(stub_of, 2) if stub_of[a] != stub_of[b]]
    return [
        *uplinks,
        *_extra(to_transit, parameters, "extra_transit_stub_links", draws, source),
        *_extra(to_stub, parameters, "extra_stub_stub_links", draws, source),
    ]


def _extra(
    possible: list[Pair], parameters: TransitStub, field: str, draws: Draws, source: str
) -> list[Pair]:
    count: int = getattr(parameters, field)
    if count > len(possible):
        raise ConfigError(source, field, count, f"at most the {len(possible)} that are possible")
    return draws.chosen(possible, count, field)


def _random_connected(
    nodes: Domain, probability: float, level: str, draws: Draws, source: str
) -> list[Pair]:
    """Each pair with the probability, drawn again until the domain is in one piece."""
    possible = list(combinations(nodes, 2))

    def attempt(number: int) -> list[Pair] | None:
        chances = draws.stream("transit-stub", level, nodes[0], number).random(len(possible))
        pairs = [
            pair for pair, chance in zip(possible, chances, strict=True) if chance < probability
        ]
        return pairs if reaches_all(nodes, pairs) else None

    return first_success(attempt, source, f"{level}_link_probability", probability)


def _one(nodes: Domain, draws: Draws, purpose: str, *about: object) -> BrokerId:
    return draws.chosen(nodes, 1, purpose, *about)[0]
