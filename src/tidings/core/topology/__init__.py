"""Which brokers are there, who is linked to whom, and how far apart are they?

`graph` has the value (`Topology`), the other modules each know one family of overlays, and `build`
is the door for scenario files: a kind, its parameters, and a clear error when they do not fit.
"""

from tidings.core.topology.build import GENERATORS, build
from tidings.core.topology.generators import full_mesh, harmony_testbed, layered, random_degree
from tidings.core.topology.gml import from_gml
from tidings.core.topology.graph import BrokerId, Link, Topology, broker_names, connect
from tidings.core.topology.rtt import from_rtt_matrix
from tidings.core.topology.transit_stub import TransitStub, transit_stub

__all__ = [
    "GENERATORS",
    "BrokerId",
    "Link",
    "Topology",
    "TransitStub",
    "broker_names",
    "build",
    "connect",
    "from_gml",
    "from_rtt_matrix",
    "full_mesh",
    "harmony_testbed",
    "layered",
    "random_degree",
    "transit_stub",
]
