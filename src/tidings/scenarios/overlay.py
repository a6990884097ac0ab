"""Which overlay does a scenario file ask for?

One written-out dict of kinds. A kind is a frozen struct whose fields are its parameters, each with
its unit in its name and a default; names and types are checked strictly, and what does not fit
becomes a `ConfigError` that says what is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tidings.core.document import convert
from tidings.core.errors import ConfigError, one_of
from tidings.core.rng import Draws
from tidings.core.topology.generators import full_mesh, harmony_testbed, layered, random_degree
from tidings.core.topology.gml import from_gml
from tidings.core.topology.graph import MAX_BROKERS, DelayRange, Topology, connect
from tidings.core.topology.rtt import from_round_trips
from tidings.core.topology.transit_stub import TransitStub, transit_stub
from tidings.scenarios.network_files import read_map, read_round_trips

Count = Annotated[int, Meta(ge=1)]


class Site(Struct, frozen=True):
    """What every generator is given besides its parameters: chance, a name for errors, a folder."""

    draws: Draws
    source: str
    folder: Path


class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of one kind of overlay."""

    def build(self, site: Site) -> Topology:
        raise NotImplementedError


class FullMesh(Parameters, frozen=True):
    brokers: Count = 20
    delay_ms: DelayRange = (10.0, 50.0)

    def build(self, site: Site) -> Topology:
        return full_mesh(self.brokers, site.draws, self.delay_ms, site.source)


class RandomDegree(Parameters, frozen=True):
    brokers: Count = 20
    degree: Count = 5
    delay_ms: DelayRange = (10.0, 50.0)

    def build(self, site: Site) -> Topology:
        return random_degree(self.brokers, self.degree, site.draws, self.delay_ms, site.source)


class Layered(Parameters, frozen=True):
    layer_sizes: tuple[Count, ...] = (4, 4, 8, 16)
    uplinks: Count = 2
    delay_ms: DelayRange = (50.0, 100.0)
    publishers: Annotated[int, Meta(ge=0, le=MAX_BROKERS)] = 0

    def build(self, site: Site) -> Topology:
        sizes, apart = self.layer_sizes, self.publishers
        return layered(sizes, site.draws, self.uplinks, self.delay_ms, site.source, apart)


class Transit(TransitStub, Parameters, frozen=True):
    def build(self, site: Site) -> Topology:
        return transit_stub(self, site.draws, site.source)


class HarmonyTestbed(Parameters, frozen=True):
    """The testbed is as it is: no parameters."""

    def build(self, site: Site) -> Topology:
        return harmony_testbed()


class Listed(Parameters, frozen=True):
    """Every link written out: two brokers and the delay between them in milliseconds."""

    links_ms: Annotated[tuple[tuple[str, str, float], ...], Meta(min_length=1)] = (
        ("b1", "b2", 20.0),
    )

    def build(self, site: Site) -> Topology:
        links = [(a, b, delay_ms / 1000) for a, b, delay_ms in self.links_ms]
        names = sorted({name for a, b, _ in links for name in (a, b)})
        return connect(names, links, site.source)


class Gml(Parameters, frozen=True):
    path: str = "data/AttMpls.gml"
    detour_factor: Annotated[float, Meta(ge=1.0)] = 1.5
    minimum_delay_ms: Annotated[float, Meta(ge=0.0)] = 0.1

    def build(self, site: Site) -> Topology:
        text = read_map(site.folder / self.path, site.source)
        return from_gml(text, self.detour_factor, self.minimum_delay_ms, site.source)


class Rtt(Parameters, frozen=True):
    path: str = "data/seattle_rtt_20x50.parquet"
    hosts: Count = 20
    slice_number: int | None = None
    slice_s: Annotated[float, Meta(ge=0.0, le=1e8)] = 0.0

    def build(self, site: Site) -> Topology:
        measured = read_round_trips(site.folder / self.path, site.source)
        slices = self.slice_number, self.slice_s
        return from_round_trips(measured, self.hosts, site.draws, *slices, site.source)


GENERATORS: Mapping[str, type[Parameters]] = {
    "full-mesh": FullMesh,
    "random-degree": RandomDegree,
    "layered": Layered,
    "transit-stub": Transit,
    "harmony": HarmonyTestbed,
    "listed": Listed,
    "gml": Gml,
    "rtt": Rtt,
}


def build(
    kind: str,
    parameters: Mapping[str, object],
    draws: Draws,
    source: str,
    folder: Path | None = None,
) -> Topology:
    """The overlay of this kind; file names among its parameters are relative to the folder."""
    if kind not in GENERATORS:
        raise ConfigError(source, "kind", kind, one_of(GENERATORS, kind))
    checked = convert(parameters, GENERATORS[kind], source)
    return checked.build(Site(draws, source, folder or Path()))
