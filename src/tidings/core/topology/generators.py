"""Which overlays do the papers' evaluations run on?

- DCRD (section IV.A): 20 brokers, fully meshed or with a given degree; 10 to 50 ms per link.
- Bounded delay (section 6): 32 brokers in layers of 4, 4, 8 and 16.
- Harmony (figure 1): five brokers, every pair linked.

All chance is keyed: which pairs are linked depends on the seed and the parameters, the delay of a
link on the seed and its two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, cycle, pairwise
from typing import TypeVar

import numpy as np

from tidings.core.errors import ConfigError
from tidings.core.rng import Draws
from tidings.core.topology.graph import (
    BrokerId,
    DelayRange,
    Topology,
    broker_names,
    connect,
    drawn_links,
    reaches_all,
)

T = TypeVar("T")

# Random 2-regular graphs of 1000 brokers are one piece in about 6 % of the draws: 1000 are plenty.
MAX_ATTEMPTS = 1000

# Only 1-2, 1-3, 3-4, 2-5 and 1-5 follow from the paper's text, and that the smaller of 2-3 and 2-4
# is 5 ms; the rest is a choice consistent with it.
HARMONY_DELAY_MS = {
    ("n1", "n2"): 16,
    ("n1", "n3"): 20,
    ("n1", "n4"): 16,
    ("n1", "n5"): 6,
    ("n2", "n3"): 5,
    ("n2", "n4"): 15,
    ("n2", "n5"): 12,
    ("n3", "n4"): 15,
    ("n3", "n5"): 16,
    ("n4", "n5"): 14,
}


def full_mesh(
    brokers: int, draws: Draws, delay_ms: DelayRange = (10.0, 50.0), source: str = "full-mesh"
) -> Topology:
    """Every pair of brokers is linked."""
    names = broker_names(brokers, source)
    return connect(names, drawn_links(combinations(names, 2), delay_ms, draws, source), source)


def random_degree(
    brokers: int,
    degree: int,
    draws: Draws,
    delay_ms: DelayRange = (10.0, 50.0),
    source: str = "random-degree",
) -> Topology:
    """A random connected graph in which every broker has `degree` links.

    If brokers * degree is odd no such graph exists; then one broker, drawn, has one link less.
    """
    names = broker_names(brokers, source)
    if not (2 <= degree < brokers or (brokers, degree) == (2, 1)):
        accepted = f"2 to {brokers - 1} links a broker for {brokers} brokers (1 for two brokers)"
        raise ConfigError(source, "degree", degree, accepted)
    degrees = [degree] * brokers
    if brokers * degree % 2:
        degrees[draws.chosen(range(brokers), 1, "odd-degree", brokers, degree)[0]] -= 1

    def attempt(number: int) -> list[tuple[BrokerId, BrokerId]] | None:
        stream = draws.stream("random-degree", brokers, degree, number)
        pairs = _dense_pairing(degrees, stream)
        linked = [(names[a], names[b]) for a, b in sorted(pairs)] if pairs is not None else []
        return linked if reaches_all(names, linked) else None

    pairs = first_success(attempt, source, "degree", degree)
    return connect(names, drawn_links(pairs, delay_ms, draws, source), source)


def layered(
    layer_sizes: Sequence[int],
    draws: Draws,
    uplinks: int = 2,
    delay_ms: DelayRange = (50.0, 100.0),
    source: str = "layered",
    publishers: int = 0,
) -> Topology:
    """Layers of brokers, named from the first layer to the last.

    Each broker of the second layer is linked to all of the first, each broker of a later layer to
    `uplinks` random ones of the layer before (fewer if that layer is smaller). The paper's 50 to
    100 ms is per kilobyte; here it is the delay of the link, true for a message of one kilobyte.
    A study that gives links a rate sets the delay to 0.

    `publishers` puts so many brokers p1, p2, ... before the others, each with one link to a broker
    of the first layer, in turn: a publisher's connection that is a link like any other. The rest
    of the overlay is the same with them and without.
    """
    if uplinks < 1:
        raise ConfigError(source, "uplinks", uplinks, "at least one link to the layer above")
    layers = _layers(layer_sizes, source)
    apart = [f"p{number}" for number in range(1, publishers + 1)]
    pairs = list(zip(apart, cycle(layers[0]), strict=False))
    pairs += [(above, broker) for broker in layers[1] for above in layers[0]]
    for upper, lower in pairwise(layers[1:]):
        for broker in lower:
            chosen = draws.chosen(upper, uplinks, "layered", broker)
            pairs += [(above, broker) for above in sorted(chosen)]
    names = [*apart, *(broker for layer in layers for broker in layer)]
    return connect(names, drawn_links(pairs, delay_ms, draws, source), source)


def harmony_testbed() -> Topology:
    """The five brokers of Harmony's figure 1."""
    names = ("n1", "n2", "n3", "n4", "n5")
    return connect(names, ((a, b, ms / 1000) for (a, b), ms in HARMONY_DELAY_MS.items()))


def first_success(attempt: Callable[[int], T | None], source: str, field: str, value: object) -> T:
    """The first attempt that gives something; attempts are numbered so that each is keyed."""
    for number in range(MAX_ATTEMPTS):
        if (result := attempt(number)) is not None:
            return result
    accepted = f"a value that gives a connected graph ({MAX_ATTEMPTS} draws did not)"
    raise ConfigError(source, field, value, accepted)


def _layers(sizes: Sequence[int], source: str) -> list[tuple[BrokerId, ...]]:
    if len(sizes) < 2 or min(sizes) < 1:
        accepted = "two layers or more, each of one broker or more"
        raise ConfigError(source, "layer_sizes", tuple(sizes), accepted)
    names = iter(broker_names(sum(sizes), source))
    return [tuple(next(names) for _ in range(size)) for size in sizes]


def _dense_pairing(degrees: list[int], stream: np.random.Generator) -> set[tuple[int, int]] | None:
    """A simple graph of these degrees; above half of all links it is easier to draw the gaps."""
    most = len(degrees) - 1
    if 2 * max(degrees) <= most:
        return _pairing(degrees, stream)
    gaps = _pairing([most - degree for degree in degrees], stream)
    return None if gaps is None else set(combinations(range(most + 1), 2)) - gaps


def _pairing(degrees: list[int], stream: np.random.Generator) -> set[tuple[int, int]] | None:
    """Steger and Wormald: pair loose ends at random, pair again those that would loop or double.

    None when the loose ends that are left can no longer be paired.
    """
    pairs: set[tuple[int, int]] = set()
    loose = np.repeat(np.arange(len(degrees)), degrees)
    while loose.size:
        stream.shuffle(loose)
        left: list[int] = []
        for a, b in zip(loose[::2].tolist(), loose[1::2].tolist(), strict=True):
            pair = (min(a, b), max(a, b))
            if a == b or pair in pairs:
                left += pair
            else:
                pairs.add(pair)
        if left and pairs.issuperset(combinations(sorted(set(left)), 2)):
            return None
        loose = np.array(left, dtype=np.int64)
    return pairs
