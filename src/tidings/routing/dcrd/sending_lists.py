"""Whom does a broker try first, and how do brokers work that out together?

DCRD's Algorithm 1. For every destination a broker keeps what its neighbours say of it (expected
delay and delivery ratio of theirs), puts the neighbours in the order of least expected delay
(`sending_list`), works out its own pair and tells it to its neighbours when it changed by more than
a tolerance. A destination's own pair is <0, 1>, told from its first subscription on.

The paper lists a neighbour only if it is expected to be in time (d_i < D_XS). Computed with that
filter, pairs depend on publisher and deadline as well, can oscillate for ever, and leave out ways
that exist. Filter `last-resort` keeps pairs free of it, so they depend on the destination alone and
settle; lateness only puts a neighbour further back when a message is forwarded, and neighbours of
which nothing is known come behind those who have a way. Filter `paper` does as the paper says.

Two rules make every exchange end. Where the overlay holds still, the tolerance doubles with every
16 times that a pair was told, so no oscillation lasts. And a destination that no chain of links
leads to has no pair: brokers that believe each other would otherwise count to infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tidings.core.errors import WireError
from tidings.core.graphs.paths import shortest_from
from tidings.core.links.estimates import LinkEstimate
from tidings.routing.base import View
from tidings.routing.dcrd.sending_list import Way, exact_way, expected, in_order, paper_way
from tidings.routing.options import Options

MOST_TARGETS = 100_000  # what neighbours can make a broker remember has an end
TOLD_UNTIL_DOUBLED = 16
MOST_DOUBLINGS = 64  # beyond all that could still change
NO_WAY = (0.0, 0.0)
LEAST_DELAY_S = 0.001  # changes of shorter delays are measured against this
MOST_DELAY_S = 1e9  # where links lose most of what they carry, Eq. 3 can grow without end
LEAST_TOLERANCE = 1e-9  # what is to grow by doubling must not be 0

Target = tuple[str, str, float]  # destination, and with filter "paper" its publisher and deadline
Choices = tuple[tuple[str, float], ...]  # neighbours in order, and their expected delay from there


class Pair(Struct, frozen=True, array_like=True, gc=False):
    """What a broker expects of itself with regard to a target; a ratio of 0 is "no way"."""

    destination: str
    publisher: str
    deadline_s: Annotated[float, Meta(ge=0)]
    delay_s: Annotated[float, Meta(ge=0, le=MOST_DELAY_S)]
    ratio: Annotated[float, Meta(ge=0, le=1)]


class _Knowledge:
    """All that one broker knows about one target."""

    __slots__ = ("choices", "heard", "listed", "pair", "times_told", "told")

    def __init__(self) -> None:
        self.heard: dict[str, tuple[int, float, float]] = {}  # by neighbour: serial, delay, ratio
        self.listed: Choices | None = None  # None: not worked out since something changed
        self.choices: Choices | None = None  # the list with the last resorts, once it is asked for
        self.pair = NO_WAY
        self.told: tuple[float, float] | None = None
        self.times_told = 0  # since the overlay changed


class SendingLists:
    """The sending lists of one broker, and its part in the exchange that makes them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._filters = options.dcrd.filter == "paper"
        self._way = self._exact_way if options.dcrd.order == "exact" else self._paper_way
        self._known: dict[Target, _Knowledge] = {}
        self._changed: dict[Target, None] = {}  # targets whose pair may have changed
        self._version = -1
        self._neighbours: tuple[str, ...] = ()
        self._links: Mapping[str, LinkEstimate] = {}
        self._reachable: frozenset[str] = frozenset()
        self._least_s: dict[str, float] = {}  # from publishers to here
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(tuple[Pair, ...])

    # ---- what routing asks

    def target(self, destination: str, publisher: str, deadline_s: float) -> Target:
        """What a message is to be judged by: its destination alone, unless the filter is used."""
        plain = (destination, "", inf)
        if not self._filters or deadline_s == inf:
            return plain
        exact = (destination, publisher, self._rounded(deadline_s))
        known = self._known.get(exact) or self._open(exact)
        # Until the exchange about it has begun, the list of all who know a way serves as well.
        begun = known and any(ratio > 0.0 for _, _, ratio in known.heard.values())
        return exact if begun else plain

    def choices(self, target: Target, view: View) -> Choices:
        """The neighbours to try, best first."""
        if view.version != self._version:
            self._look(view)
        known = self._known.get(target) or self._open(target)
        if known is None:
            return self._last_resort(target[0], (), view)
        if known.choices is None:
            known.choices = self._last_resort(target[0], self._listed(target, known, view), view)
        return known.choices

    # ---- what neighbours are told

    @property
    def has_news(self) -> bool:
        return bool(self._changed)

    def news(self, view: View) -> bytes | None:
        """The pairs that changed by more than the tolerance since they were told."""
        self._look(view)
        told = []
        for target in self._changed:
            known = self._known[target]
            self._listed(target, known, view)
            if self._is_news(known):
                known.told, known.times_told = known.pair, known.times_told + 1
                told.append(Pair(*target, *known.pair))
        self._changed.clear()
        return self._encoder.encode(told) if told else None

    def introduction(self, view: View) -> bytes | None:
        """All pairs as they were last told."""
        told = [Pair(*t, *known.told) for t, known in self._known.items() if known.told]
        return self._encoder.encode(told) if told else None

    def hear(self, neighbour: str, news: bytes, serial: int) -> None:
        """Take over what a neighbour expects of itself; an older serial is out of date."""
        try:
            pairs = self._decoder.decode(news)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            raise WireError(f"its pairs of delay and ratio make no sense: {fault}") from None
        for pair in pairs:
            target = (pair.destination, pair.publisher, pair.deadline_s)
            known = self._known.get(target) or self._open(target)
            before = known.heard.get(neighbour) if known else None
            if known is None or (before and before[0] > serial):
                continue
            known.heard[neighbour] = (serial, pair.delay_s, pair.ratio)
            known.listed = known.choices = None
            self._changed[target] = None

    # ---- working it out

    def _open(self, target: Target) -> _Knowledge | None:
        """Begin to keep a target, and tell the neighbours of it, so that all of them do."""
        if len(self._known) >= MOST_TARGETS:
            return None
        known = self._known[target] = _Knowledge()
        self._changed[target] = None
        return known

    def _look(self, view: View) -> None:
        """Take over what changed in the view: all lists may have to be worked out again."""
        if view.version == self._version:
            return
        self._version = view.version
        self._least_s.clear()
        mine: Target = (view.me, "", inf)
        if view.serves and mine not in self._known:  # however many others there are
            self._known[mine] = _Knowledge()
            self._changed[mine] = None
        links, reachable = view.links.get(view.me, {}), _reachable(view)
        before = (self._neighbours, self._links, self._reachable)
        self._neighbours, self._links, self._reachable = view.neighbours, links, reachable
        if before == (view.neighbours, links, reachable) and not self._filters:
            return
        for target, known in self._known.items():
            # What neighbours said stays: if only this side saw the link down, nobody repeats it.
            known.listed = known.choices = None
            known.times_told = 0
            self._changed[target] = None

    def _listed(self, target: Target, known: _Knowledge, view: View) -> Choices:
        """Algorithm 1: the list in Theorem 1's order, and the pair that follows from it."""
        if known.listed is None:
            if target[0] == view.me:
                known.listed, known.pair = (), (0.0, 1.0)
            elif target[0] not in self._reachable:
                known.listed, known.pair = (), NO_WAY
            else:
                self._work_out(target, known, view)
        assert known.listed is not None
        return known.listed

    def _work_out(self, target: Target, known: _Knowledge, view: View) -> None:
        _, publisher, deadline_s = target
        left_s = self._time_left(publisher, deadline_s, view) if self._filters else inf
        ways = in_order(
            self._way(neighbour, self._links[neighbour], delay_s, ratio)
            for neighbour, (_, delay_s, ratio) in known.heard.items()
            if ratio > 0.0 and delay_s < left_s and self._has_link(neighbour)
        )
        delay_s, ratio = expected(ways)
        known.pair = (min(delay_s, MOST_DELAY_S), ratio) if ratio > 0.0 else NO_WAY
        known.listed = tuple([(way.neighbour, known.heard[way.neighbour][1]) for way in ways])

    def _has_link(self, neighbour: str) -> bool:
        """Is the link up, and is something known of it?"""
        return neighbour in self._neighbours and neighbour in self._links

    def _last_resort(self, destination: str, listed: Choices, view: View) -> Choices:
        """The list, and behind it all others: nearest first, as far as the links tell."""
        complete = len(listed) == len(view.neighbours)
        if complete or self._filters or destination not in self._reachable:
            return listed
        names = {neighbour for neighbour, _ in listed}
        backwards: dict[str, dict[str, float]] = {}
        for a, near in view.links.items():
            for b, estimate in near.items():
                backwards.setdefault(b, {})[a] = estimate.delay_s
        distance = shortest_from(backwards, destination).distance
        others = [(distance.get(n, inf), n) for n in view.neighbours if n not in names]
        return listed + tuple([(neighbour, far) for far, neighbour in sorted(others)])

    def _time_left(self, publisher: str, deadline_s: float, view: View) -> float:
        """D_XS: the deadline without the least time that a message needs to get here."""
        if deadline_s == inf:
            return inf
        if publisher not in self._least_s:
            delays = {a: {b: e.delay_s for b, e in near.items()} for a, near in view.links.items()}
            self._least_s[publisher] = shortest_from(delays, publisher).distance.get(view.me, 0.0)
        return deadline_s - self._least_s[publisher]

    def _paper_way(self, neighbour: str, link: LinkEstimate, delay_s: float, ratio: float) -> Way:
        times = self._options.transmissions
        return paper_way(neighbour, link.delay_s, link.delivery_ratio, times, delay_s, ratio)

    def _exact_way(self, neighbour: str, link: LinkEstimate, delay_s: float, ratio: float) -> Way:
        times, timeout_s = self._options.transmissions, self._options.timeout_s(link.delay_s)
        arrives = link.delivery_ratio
        return exact_way(neighbour, link.delay_s, arrives, times, timeout_s, delay_s, ratio)

    def _is_news(self, known: _Knowledge) -> bool:
        if known.told is None:
            return True
        (old_s, old_ratio), (delay_s, ratio) = known.told, known.pair
        tolerance = max(self._options.dcrd.tolerance, LEAST_TOLERANCE)
        tolerance *= 2.0 ** min(known.times_told // TOLD_UNTIL_DOUBLED, MOST_DOUBLINGS)
        return (
            (old_ratio > 0.0) != (ratio > 0.0)
            or abs(delay_s - old_s) > tolerance * max(old_s, LEAST_DELAY_S)
            or abs(ratio - old_ratio) > tolerance
        )

    def _rounded(self, deadline_s: float) -> float:
        step_s = self._options.dcrd.deadline_step_s
        return ceil(deadline_s / step_s) * step_s if step_s else deadline_s


def _reachable(view: View) -> frozenset[str]:
    """All brokers that some chain of links leads to."""
    reached = set(view.neighbours)
    border = list(reached)
    while border:
        for broker in view.links.get(border.pop(), {}):
            if broker not in reached:
                reached.add(broker)
                border.append(broker)
    return frozenset(reached)
