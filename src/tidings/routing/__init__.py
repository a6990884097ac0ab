"""Where next? Strategies by their registry names."""

from collections.abc import Callable

from tidings.routing.base import Router
from tidings.routing.direct import Direct
from tidings.routing.flooding import Flooding
from tidings.routing.trees import Tree, expected_delay, hop_count

ROUTERS: dict[str, Callable[[], Router]] = {
    "direct": Direct,
    "d-tree": lambda: Tree(expected_delay),
    "r-tree": lambda: Tree(hop_count),
    "flooding": Flooding,
}
