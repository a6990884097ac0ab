"""Where next? Strategies by their registry names.

Read `base` first: the question that every strategy answers, and what it may look at. What several
strategies share is in `weights` (what a link weighs) and `plans` (copies that carry whole paths).
Then the strategies, simple ones first: `direct`, `flooding`, `trees`, `multipath`, `balanced`,
`oracle`, and the folders `dcrd` and `harmony`. What a person may set is in `options`.
"""

from collections.abc import Callable

from tidings.routing.balanced import Balanced
from tidings.routing.dcrd.router import Dcrd
from tidings.routing.direct import Direct
from tidings.routing.flooding import Flooding
from tidings.routing.harmony.router import Harmony
from tidings.routing.multipath import Multipath
from tidings.routing.options import Options
from tidings.routing.oracle import Oracle
from tidings.routing.protocols import Router
from tidings.routing.trees import Tree
from tidings.routing.weights import expected_delay, hop_count

ROUTERS: dict[str, Callable[[Options], Router]] = {
    "direct": lambda options: Direct(),
    "d-tree": lambda options: Tree(expected_delay),
    "r-tree": lambda options: Tree(hop_count),
    "balanced": lambda options: Balanced(),
    "dcrd": Dcrd,
    "multipath": lambda options: Multipath(),
    "best-path": lambda options: Harmony(options, qos=False, multipath=False),
    "qos-path": lambda options: Harmony(options, qos=True, multipath=False),
    "qos-multipath": lambda options: Harmony(options, qos=True, multipath=True),
    "oracle": Oracle,
    "flooding": lambda options: Flooding(),
}

# Strategies that need to know what no deployment can know.
SIMULATOR_ONLY: frozenset[str] = frozenset({"oracle"})

# Strategies that take a message on without being told who wants it.
CARRY_OPEN: frozenset[str] = frozenset({"flooding"})


def live_strategies() -> list[str]:
    """The names a live broker accepts, sorted."""
    return sorted(ROUTERS.keys() - SIMULATOR_ONLY)
