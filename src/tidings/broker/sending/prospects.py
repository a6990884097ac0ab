"""What lies beyond a link, for those who decide what leaves over it first.

The rows of the bounded-delay paper's subscription table: per destination, the brokers to go and the
mean and variance of the time per byte, over the path that the parcel takes: by the plan that it
carries, or else by its strategy. They follow the view: whenever a link's estimate or a path
changes, so do they.
"""

from __future__ import annotations

from itertools import pairwise

from tidings.broker.strategies import Strategies
from tidings.core.cache import BoundedCache
from tidings.core.contract import ANYBODY
from tidings.core.graphs.paths import BrokerPath, shortest_from
from tidings.core.links.outlook import Outlook, outlook
from tidings.core.parcel import Parcel
from tidings.routing.base import View
from tidings.routing.protocols import Foretells
from tidings.routing.weights import expected_delay

PLANNED_BYTES = 4 << 20  # of paths whose sum is kept: plans come over the wire, memory ends
PATH_BYTES, NAME_BYTES = 300, 8  # of one, and of each broker on it


class LinkProspects:
    """The paths that begin with the link to one neighbour."""

    def __init__(self, neighbour: str, view: View, strategies: Strategies) -> None:
        self._neighbour, self._view, self._strategies = neighbour, view, strategies
        self._known: dict[tuple[str, str], Outlook | None] = {}  # by strategy and destination
        # By the rest of a plan's path.
        self._planned = BoundedCache[BrokerPath, Outlook | None](PLANNED_BYTES)
        self._plan: tuple[BrokerPath, ...] = ()  # of the parcel that was last asked about ...
        self._rests: dict[str, BrokerPath] = {}  # ... and its paths from here, by destination
        self._version = -1

    @property
    def version(self) -> int:
        return self._view.version

    @property
    def s_per_byte(self) -> float:
        link = self._view.links.get(self._view.me, {}).get(self._neighbour)
        return link.s_per_byte if link else 0.0

    def outlook(self, parcel: Parcel, destination: str) -> Outlook | None:
        if self._version != self._view.version:
            self._known.clear()
            self._planned.clear()
            self._version = self._view.version
        if parcel.plan and (rest := self._rest(parcel.plan, destination)):
            if rest in self._planned:
                return self._planned[rest]
            size_bytes = PATH_BYTES + sum(NAME_BYTES + len(broker) for broker in rest)
            return self._planned.keep(rest, self._sum(rest), size_bytes)
        key = (parcel.strategy, destination)
        if key not in self._known:
            self._known[key] = self._sum(self._path(*key))
        return self._known[key]

    def _sum(self, path: BrokerPath) -> Outlook | None:
        links = self._view.links
        if len(path) < 2 or any(b not in links.get(a, {}) for a, b in pairwise(path)):
            return None
        return outlook(links[a][b] for a, b in pairwise(path))

    def _rest(self, plan: tuple[BrokerPath, ...], destination: str) -> BrokerPath | None:
        """A planned path from here on, if it goes over this link. All destinations of a parcel are
        asked for in a row, so its plan is read once."""
        if plan is not self._plan:
            here = (self._view.me, self._neighbour)
            rests = (path[path.index(here[0]) :] for path in plan if here[0] in path)
            self._plan, self._rests = plan, {rest[-1]: rest for rest in rests if rest[:2] == here}
        return self._rests.get(destination)

    def _path(self, strategy: str, destination: str) -> BrokerPath:
        """The path that the strategy takes, as far as it can tell; else the shortest."""
        me, router = self._view.me, self._strategies.get(strategy)
        if destination == ANYBODY:  # who may be as near as this neighbour
            return (me, self._neighbour)
        if isinstance(router, Foretells):
            path = router.way(destination, self._view)
            if len(path) > 1 and path[1] == self._neighbour:
                return path
        delays = expected_delay(self._view)[0]
        return (me, *shortest_from(delays, self._neighbour).path_to(destination))
