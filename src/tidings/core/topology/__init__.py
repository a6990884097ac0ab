"""Which brokers are there, who is linked to whom, and how far apart are they?

`graph` has the value (`Topology`), the other modules each know one family of overlays. The door for
scenario files, a kind with its parameters, is `scenarios.overlay`.
"""

from tidings.core.topology.generators import full_mesh, harmony_testbed, layered, random_degree
from tidings.core.topology.gml import from_gml
from tidings.core.topology.graph import BrokerId, Link, Topology, broker_names, connect
from tidings.core.topology.rtt import from_round_trips
from tidings.core.topology.transit_stub import TransitStub, transit_stub

__all__ = [
    "BrokerId",
    "Link",
    "Topology",
    "TransitStub",
    "broker_names",
    "connect",
    "from_gml",
    "from_round_trips",
    "full_mesh",
    "harmony_testbed",
    "layered",
    "random_degree",
    "transit_stub",
]
