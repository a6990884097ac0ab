"""Which first? The order in which parcels leave for one neighbour.

A policy is a queue discipline: it is made once per link, parcels are pushed as they come, and `pop`
gives the one that is to leave now. It knows neither the router nor the wire.
"""

from tidings.scheduling.base import Queue
from tidings.scheduling.simple import Fifo, RemainingLifetime

POLICIES: dict[str, type[Queue]] = {
    "fifo": Fifo,
    "rl": RemainingLifetime,
}
