"""What is an overlay? Brokers by name and undirected links, each with a one-way delay.

A link's delay is one number, what it is in the long run: deadlines and pinned estimates are made of
it. Where measurements say how it moves around that, the link also has its steps, for the physics.

A `Topology` that exists is valid: names are unique, a link joins two different known brokers, no
two links join the same pair, delays are finite and not negative, and steps are in order. `connect`
is the way to make one from loose pairs; it puts the ends and the links in the order of the brokers,
so that equal overlays are equal values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import inf, isfinite
from typing import TypeAlias

from msgspec import Struct

from tidings.core.errors import ConfigError
from tidings.core.rng import Draws

BrokerId: TypeAlias = str
DelayRange: TypeAlias = tuple[float, float]

_NAME = re.compile(r"[^/\s]+")  # a subscription's id begins with its broker's name and a `/`
MAX_BROKERS = 1000  # a full mesh of them has half a million links, which still takes only seconds


class Link(Struct, frozen=True, omit_defaults=True):
    """An undirected link; `a` comes before `b` among the brokers."""

    a: BrokerId
    b: BrokerId
    delay_s: float  # the mean, if it moves
    delay_steps: tuple[tuple[float, float], ...] = ()  # (from_s, delay_s), sorted, the first from 0
    repeat_s: float = inf  # after so long the steps begin again

    @property
    def start_delay_s(self) -> float:
        return self.delay_steps[0][1] if self.delay_steps else self.delay_s


class Topology(Struct, frozen=True, dict=True):
    """Brokers and the links between them."""

    brokers: tuple[BrokerId, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        _check_brokers(self.brokers)
        _check_links(self.brokers, self.links)

    @cached_property
    def delays(self) -> Mapping[BrokerId, Mapping[BrokerId, float]]:
        """delays[a][b] in seconds, both ways: the weighted graph that `core.graphs.paths` works
        on."""
        delays: dict[BrokerId, dict[BrokerId, float]] = {broker: {} for broker in self.brokers}
        for link in self.links:
            delays[link.a][link.b] = delays[link.b][link.a] = link.delay_s
        return {broker: dict(sorted(near.items())) for broker, near in delays.items()}

    def neighbours(self, broker: BrokerId) -> tuple[BrokerId, ...]:
        return tuple(self.delays[broker])

    def delay_s(self, a: BrokerId, b: BrokerId) -> float:
        """The delay of the link between a and b; a KeyError if there is none."""
        return self.delays[a][b]

    def is_connected(self) -> bool:
        return reaches_all(self.brokers, [(link.a, link.b) for link in self.links])


def connect(
    brokers: Sequence[BrokerId],
    delays_s: Iterable[tuple[BrokerId, BrokerId, float]],
    source: str = "topology",
) -> Topology:
    """The topology of these links, given in any order; errors name the source."""
    position = {broker: i for i, broker in enumerate(brokers)}
    try:
        links = [_ordered(a, b, delay_s, position) for a, b, delay_s in delays_s]
        links.sort(key=lambda link: (position[link.a], position[link.b]))
        return Topology(tuple(brokers), tuple(links))
    except ConfigError as error:
        raise ConfigError(source, error.field, error.value, error.accepted) from None


def broker_names(count: int, source: str = "topology") -> tuple[BrokerId, ...]:
    """b1…b9, b01…b20, b001…b160: padded, so that the order of the texts is that of the numbers."""
    if not 1 <= count <= MAX_BROKERS:
        raise ConfigError(source, "brokers", count, f"1 to {MAX_BROKERS} brokers")
    width = len(str(count))
    return tuple(f"b{number:0{width}}" for number in range(1, count + 1))


def drawn_links(
    pairs: Iterable[tuple[BrokerId, BrokerId]],
    delay_ms: DelayRange,
    draws: Draws,
    source: str,
    field: str = "delay_ms",
) -> list[tuple[BrokerId, BrokerId, float]]:
    """Each pair with a delay from the range, keyed by its two ends and by nothing else.

    So a link has the same delay whatever the order of the pairs, and the same in a mesh and in a
    sparser graph of the same seed.
    """
    low, high = delay_ms
    if not 0 <= low <= high or not isfinite(high):
        raise ConfigError(source, field, delay_ms, "[low, high] with 0 <= low <= high, in ms")
    return [
        (a, b, draws.uniform(low, high, "link-delay", *sorted((a, b))) / 1000) for a, b in pairs
    ]


def reaches_all(brokers: Sequence[BrokerId], pairs: Iterable[tuple[BrokerId, BrokerId]]) -> bool:
    """Whether the pairs join all the brokers into one piece (no broker at all is one piece)."""
    near: dict[BrokerId, list[BrokerId]] = {broker: [] for broker in brokers}
    for a, b in pairs:
        near[a].append(b)
        near[b].append(a)
    reached, frontier = set(brokers[:1]), list(brokers[:1])
    while frontier:
        fresh = set(near[frontier.pop()]) - reached
        reached |= fresh
        frontier += fresh
    return len(reached) == len(near)


def _ordered(a: BrokerId, b: BrokerId, delay_s: float, position: Mapping[BrokerId, int]) -> Link:
    for end in (a, b):
        _check_known(end, position)
    return Link(a, b, delay_s) if position[a] <= position[b] else Link(b, a, delay_s)


def _check_known(broker: BrokerId, brokers: Mapping[BrokerId, int]) -> None:
    if broker not in brokers:
        raise ConfigError("topology", "links", broker, "the name of one of the brokers")


def _check_brokers(brokers: tuple[BrokerId, ...]) -> None:
    if not brokers:
        raise ConfigError("topology", "brokers", brokers, "at least one broker")
    seen: set[BrokerId] = set()
    for broker in brokers:
        if not broker or broker in seen or not _NAME.fullmatch(broker):
            accepted = "names that are unique, not empty, and without `/` or white space"
            raise ConfigError("topology", "brokers", broker, accepted)
        seen.add(broker)


def _check_links(brokers: tuple[BrokerId, ...], links: tuple[Link, ...]) -> None:
    position = {broker: i for i, broker in enumerate(brokers)}
    seen: set[tuple[BrokerId, BrokerId]] = set()
    for link in links:
        _check_known(link.a, position)
        _check_known(link.b, position)
        ends = (link.a, link.b)
        if position[link.a] >= position[link.b]:
            raise ConfigError("topology", "links", ends, "two brokers, in the order of the brokers")
        if ends in seen:
            raise ConfigError("topology", "links", ends, "one link for each pair of brokers")
        _check_delays(link)
        seen.add(ends)


def _check_delays(link: Link) -> None:
    steps_at = [from_s for from_s, _ in link.delay_steps]
    for delay_s in (link.delay_s, *(delay_s for _, delay_s in link.delay_steps)):
        if not (isfinite(delay_s) and delay_s >= 0):
            accepted = f"a finite delay of 0 s or more on the link {link.a}-{link.b}"
            raise ConfigError("topology", "delay_s", delay_s, accepted)
    if steps_at and (steps_at[0] != 0 or steps_at != sorted(set(steps_at))):
        accepted = f"steps on the link {link.a}-{link.b} from 0 s on, each after the one before"
        raise ConfigError("topology", "delay_steps", steps_at, accepted)
    if steps_at and not link.repeat_s > steps_at[-1]:
        accepted = f"an instant after the last step of the link {link.a}-{link.b}"
        raise ConfigError("topology", "repeat_s", link.repeat_s, accepted)
