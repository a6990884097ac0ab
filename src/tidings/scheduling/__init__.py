"""Which first? The order in which parcels leave for one neighbour.

A policy is a queue discipline: it is made once per link, parcels are pushed as they come, and `pop`
gives the one that is to leave now. It knows neither the router nor the wire.
"""

from collections.abc import Callable

from tidings.scheduling.base import Prospects, Queue
from tidings.scheduling.benefit.priced import Priced
from tidings.scheduling.benefit.queue import Benefit
from tidings.scheduling.options import BenefitOptions
from tidings.scheduling.simple import Fifo, RemainingLifetime
from tidings.scheduling.urgency import Urgency

POLICIES: dict[str, Callable[[Prospects, BenefitOptions], Queue]] = {
    "fifo": Fifo,
    "rl": RemainingLifetime,
    "eb": lambda prospects, options: Benefit(prospects, options, 1.0),
    "pc": lambda prospects, options: Benefit(prospects, options, 0.0),
    "ebpc": lambda prospects, options: Benefit(prospects, options, options.weight),
    "priced": Priced,
    "urgency": Urgency,
}
# Policies that ask how many want a message, or what they pay. To others a taker more is all one.
COUNTING = frozenset(POLICIES) - {"fifo", "urgency"}
