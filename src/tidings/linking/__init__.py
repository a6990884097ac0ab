"""Whom to be linked with? Linkers by their registry names.

Read `base` first: the question that every linker answers, and what it may look at. `fixed` has the
two that need no thought. What the others share: `surroundings` (the overlay as a graph) and
`healing` (who dials a part that was cut off). Then `nearest`, with `delays` (what was measured) and
`exploring` (links that are up to be measured), and `random` in `partial_view`. What a person may
set is in `options`.
"""

from collections.abc import Callable

from tidings.linking.base import Linker
from tidings.linking.fixed import Configured, Everybody
from tidings.linking.nearest import Nearest
from tidings.linking.options import LinkingOptions
from tidings.linking.partial_view import PartialView

LINKERS: dict[str, Callable[[LinkingOptions], Linker]] = {
    "configured": lambda options: Configured(),
    "full-mesh": lambda options: Everybody(),
    "nearest": Nearest,
    "random": PartialView,
}
