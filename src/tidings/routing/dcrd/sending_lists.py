"""Whom does a broker try first, and how do brokers work that out together?

The exchange
------------
DCRD's Algorithm 1. For every destination a broker keeps what its neighbours expect of themselves
(a pair of expected delay and delivery ratio), puts the neighbours in the order of least expected
delay (`attempts`), works out its own pair and advertises it to its neighbours when it changed by
more than a tolerance (`pairs`). A destination's own pair is <0, 1>, advertised from its first
subscription on.

The filter
----------
The paper lists a neighbour only if it is expected to be in time (d_i < D_XS). Computed with that
filter, pairs depend on publisher and deadline as well, can oscillate for ever, and leave out ways
that exist. Filter `last-resort` keeps pairs free of it, so they depend on the destination alone and
settle; lateness only puts a neighbour further back when a message is forwarded, and neighbours of
which nothing is known come behind those who have a way. Filter `paper` does as the paper says.

Why it ends
-----------
Two rules make every exchange end. Where the overlay does not change, the tolerance doubles with
every 16 times that a pair was advertised, so no oscillation lasts. And a destination that no chain
of links leads to has no pair: brokers that believe each other would otherwise count to infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf

from tidings.core.links.estimates import LinkEstimate
from tidings.routing.base import View
from tidings.routing.dcrd.attempts import (
    Attempt,
    exact_attempt,
    expected,
    in_order,
    paper_attempt,
)
from tidings.routing.dcrd.pairs import (
    MOST_DELAY_S,
    NO_WAY,
    Expectation,
    Pair,
    Target,
    decode,
    encode,
    is_news,
)
from tidings.routing.options import Options
from tidings.routing.reach import distances_from, distances_to, reachable

MOST_TARGETS = 100_000  # neighbours may name any, and memory ends

Choices = tuple[tuple[str, float], ...]  # neighbours in order, and their expected delay from there


class _Knowledge:
    """All that one broker knows about one target."""

    __slots__ = ("advertised", "choices", "heard", "listed", "pair", "times_advertised")

    def __init__(self) -> None:
        self.heard: dict[str, tuple[int, float, float]] = {}  # by neighbour: serial, delay, ratio
        self.listed: Choices | None = None  # None: not worked out since something changed
        self.choices: Choices | None = None  # the list with the last resorts, once it is asked for
        self.pair: Expectation = NO_WAY
        self.advertised: Expectation | None = None  # the pair that neighbours got last
        self.times_advertised = 0  # since the overlay changed


class SendingLists:
    """The sending lists of one broker, and its part in the exchange that makes them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._filters = options.dcrd.filter == "paper"
        exact = options.dcrd.order == "exact"
        self._attempt = self._exact_attempt if exact else self._paper_attempt
        self._known: dict[Target, _Knowledge] = {}
        self._changed: dict[Target, None] = {}  # targets whose pair may have changed
        self._version = -1
        self._neighbours: tuple[str, ...] = ()
        self._met: frozenset[str] = frozenset()  # neighbours, whether their links are up or down
        self._links: Mapping[str, LinkEstimate] = {}
        self._reachable: frozenset[str] = frozenset()
        self._least_s: dict[str, float] = {}  # from publishers to here

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

    # ---- what brokers tell each other

    @property
    def has_news(self) -> bool:
        return bool(self._changed)

    def news(self, view: View) -> bytes | None:
        """The pairs that changed by more than the tolerance since they were advertised."""
        self._look(view)
        tolerance, pairs = self._options.dcrd.tolerance, list[Pair]()
        for target in self._changed:
            known = self._known[target]
            self._listed(target, known, view)
            if is_news(known.advertised, known.pair, tolerance, known.times_advertised):
                known.advertised = known.pair
                known.times_advertised += 1
                pairs.append(Pair(*target, *known.pair))
        self._changed.clear()
        return encode(pairs)

    def introduction(self, view: View) -> bytes | None:
        """All pairs as they were last advertised."""
        known = self._known.items()
        return encode([Pair(*target, *k.advertised) for target, k in known if k.advertised])

    def hear(self, neighbour: str, news: bytes, serial: int) -> None:
        """Take over what a neighbour expects of itself; an older serial is out of date."""
        for pair in decode(news):
            target = pair.target
            known = self._known.get(target) or self._open(target)
            before = known.heard.get(neighbour) if known else None
            if known is None or (before and before[0] > serial):
                continue
            known.heard[neighbour] = (serial, pair.delay_s, pair.ratio)
            known.listed = known.choices = None
            self._changed[target] = None

    # ---- working it out

    def _open(self, target: Target) -> _Knowledge | None:
        """Begin to keep a target, and advertise it, so that neighbours keep it too; None if there
        are too many."""
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
        self._forget_who_left(view)
        links, reached = view.links.get(view.me, {}), reachable(view)
        before = (self._neighbours, self._links, self._reachable)
        self._neighbours, self._links, self._reachable = view.neighbours, links, reached
        if before == (view.neighbours, links, reached) and not self._filters:
            return
        for target, known in self._known.items():
            # What was heard stays: if only this side saw the link down, no neighbour repeats it.
            known.listed = known.choices = None
            known.times_advertised = 0
            self._changed[target] = None

    def _forget_who_left(self, view: View) -> None:
        """Nothing is kept of what former neighbours said, nor of brokers that are no more."""
        met = frozenset((*view.neighbours, *view.severed))
        parted, self._met = self._met - met, met
        if parted:
            for known in self._known.values():
                for neighbour in parted:
                    known.heard.pop(neighbour, None)
        for target in [t for t in self._known if t[0] not in view.links and t[0] != view.me]:
            if not any(ratio > 0.0 for _, _, ratio in self._known[target].heard.values()):
                del self._known[target]
                self._changed.pop(target, None)

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
        attempts = in_order(
            self._attempt(neighbour, self._links[neighbour], delay_s, ratio)
            for neighbour, (_, delay_s, ratio) in known.heard.items()
            if ratio > 0.0 and delay_s < left_s and self._has_link(neighbour)
        )
        delay_s, ratio = expected(attempts)
        known.pair = (min(delay_s, MOST_DELAY_S), ratio) if ratio > 0.0 else NO_WAY
        known.listed = tuple([(a.neighbour, known.heard[a.neighbour][1]) for a in attempts])

    def _has_link(self, neighbour: str) -> bool:
        """Is the link up, and is something known of it?"""
        return neighbour in self._neighbours and neighbour in self._links

    def _last_resort(self, destination: str, listed: Choices, view: View) -> Choices:
        """The list, and behind it all others: nearest first, as far as the links tell."""
        complete = len(listed) == len(view.neighbours)
        if complete or self._filters or destination not in self._reachable:
            return listed
        names = {neighbour for neighbour, _ in listed}
        distance = distances_to(destination, view)
        others = [(distance.get(n, inf), n) for n in view.neighbours if n not in names]
        return listed + tuple([(neighbour, far) for far, neighbour in sorted(others)])

    def _time_left(self, publisher: str, deadline_s: float, view: View) -> float:
        """D_XS: the deadline without the least time that a message needs to get here."""
        if deadline_s == inf:
            return inf
        if publisher not in self._least_s:
            self._least_s[publisher] = distances_from(publisher, view).get(view.me, 0.0)
        return deadline_s - self._least_s[publisher]

    def _paper_attempt(
        self, neighbour: str, link: LinkEstimate, delay_s: float, ratio: float
    ) -> Attempt:
        times, arrives = self._options.transmissions, link.delivery_ratio
        return paper_attempt(neighbour, link.delay_s, arrives, times, delay_s, ratio)

    def _exact_attempt(
        self, neighbour: str, link: LinkEstimate, delay_s: float, ratio: float
    ) -> Attempt:
        times, arrives = self._options.transmissions, link.delivery_ratio
        timeout_s = self._options.timeout_s(link.delay_s)
        return exact_attempt(neighbour, link.delay_s, arrives, times, timeout_s, delay_s, ratio)

    def _rounded(self, deadline_s: float) -> float:
        step_s = self._options.dcrd.deadline_step_s
        return ceil(deadline_s / step_s) * step_s if step_s else deadline_s
