"""`eb`, `pc`, `ebpc`: the message that is worth most goes first.

The order
---------
Worth changes with time, and a queue of thousands must not be valued anew for each decision. So
every parcel stands in a heap under a number that its worth will not exceed for a while. A decision
takes parcels from the top and values them, and stops when the best of them is worth at least as
much as the next number promises: a full rescan would have chosen the same parcel (equals by
arrival). Parcels that were valued but not chosen go back under a new number.

The numbers
-----------
They rest on two facts. As long as every chance is certain or gone, the worth does not change, and
the number is the worth itself: equals cost nothing. Otherwise each group's share in the worth rises
and then falls, and its greatest value in a span of time is known (`WorthOverTime.most`). A parcel
gets the longest span for which its number stays below what is being sent; only those near the top
are valued again after about one sending time. With r = 1 nothing ever rises, and all numbers last.

If the way to a destination changes, or the clock is set back, all parcels are valued anew.

Measured
--------
By `bench/schedule.py`, with a hundred destinations each and queues of 100 and of 10,000: a decision
looks at parcels 4 and 8 times with r = 1, 21 and 68 times with r = 0.8, 135 and 455 times with
r = 0. So a short queue with r = 0 saves nothing over a rescan, for nearly every parcel has chances
that move; and with r = 0.8 a decision takes 3.9 times as long where the queue is 100 times as long,
which is more than a logarithm. With one destination each, all three take 1.2 to 1.3 times as long.
To value all anew took 1.2 s for 10,000 parcels with a hundred destinations each.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf

from tidings.core.parcel import Parcel
from tidings.scheduling.base import Prospects
from tidings.scheduling.benefit.worth_over_time import ROUNDING, WorthOverTime
from tidings.scheduling.chances import curves_of, doomed_from, must_arrive
from tidings.scheduling.options import BenefitOptions

SPANS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)  # in FT: how long a number may last
LONG = 8.0  # in FT: most chances that move in so long a time have come and gone
FAR = 0.9  # of what was worth sending last: a number below it disturbs nobody
FLAT = 1.05  # a parcel that never rises by more gets a number for ever
FIRST_CHANGE = 0.1  # a smaller change of FT is none
VOID_PLACES = 64  # fewer than these, or than the parcels that wait, are not worth clearing away

Place = tuple[float, int, int]


class _Entry:
    """A parcel that waits."""

    __slots__ = ("number", "parcel", "stamp", "worth")

    def __init__(self, number: int, parcel: Parcel) -> None:
        self.number, self.parcel = number, parcel  # by arrival
        self.worth = WorthOverTime(())
        self.stamp = 0  # of its newest place in the heaps; older ones are void


class Benefit:
    """What is worth most first; `weight` is r of Eq. 10."""

    def __init__(self, prospects: Prospects, options: BenefitOptions, weight: float) -> None:
        self._prospects, self._options, self._weight = prospects, options, weight
        self._entries: dict[int, _Entry] = {}
        self._best: list[Place] = []  # (-most it can be worth, number, stamp)
        self._lapses: list[Place] = []  # (until when that holds, number, stamp)
        self._dooms: list[Place] = []  # (when it has no chance, number, version)
        self._version = prospects.version
        self._now = -inf
        self._arrivals = 0
        self._size_bytes = 0.0  # mean of all that came
        self._first_s = 0.0  # FT: how long the link will be taken by whoever goes first
        self._level = 0.0  # what the last parcel that left was worth

    # ---- the queue

    def push(self, parcel: Parcel, now: float) -> None:
        self._arrivals += 1
        self._size_bytes += (parcel.size_bytes - self._size_bytes) / self._arrivals
        self._keep_up(now)
        entry = self._entries[self._arrivals] = _Entry(self._arrivals, parcel)
        self._draw(entry)
        self._place(entry, now)

    def pop(self, now: float) -> Parcel | None:
        self._keep_up(now)
        while self._lapses and self._lapses[0][0] < now:
            _, number, stamp = heappop(self._lapses)
            if (entry := self._entries.get(number)) and entry.stamp == stamp:
                self._place(entry, now)
        best = self._choose(now)
        return None if best is None else self._entries.pop(best.number).parcel

    def doomed(self, now: float) -> Iterator[Parcel]:
        if self._options.delete == "none":
            return
        self._keep_up(now)
        while self._dooms and self._dooms[0][0] <= now:
            _, number, version = heappop(self._dooms)
            if version == self._version and number in self._entries:
                yield self._entries.pop(number).parcel

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Parcel]:
        return (entry.parcel for entry in self._entries.values())

    def worth(self, parcel: Parcel, now: float) -> float:
        """What sending this parcel is worth now, by Eq. 10."""
        curves = curves_of(parcel, self._prospects)
        return WorthOverTime(curves).at(now, self._weight, self._first_s)

    # ---- the order

    def _choose(self, now: float) -> _Entry | None:
        """The entry that is worth most now, equals by arrival."""
        best, most, heap, valued = None, -inf, self._best, []
        while heap:
            promise, number, stamp = heap[0]
            entry = self._entries.get(number)
            if entry is None or entry.stamp != stamp:
                heappop(heap)
                continue
            if best is not None and (promise, number) > (-most, best.number):
                break
            heappop(heap)
            value = entry.worth.at(now, self._weight, self._first_s)
            valued.append(entry)
            if best is None or (value, -entry.number) > (most, -best.number):
                best, most = entry, value
        self._level = most if best else self._level
        for entry in valued:
            if entry is not best:
                self._place(entry, now)
        return best

    def _place(self, entry: _Entry, now: float) -> None:
        """Put an entry under a number that its worth does not exceed, and say for how long."""
        entry.stamp += 1
        most, until = self._promise(entry.worth, now)
        heappush(self._best, (-most, entry.number, entry.stamp))
        if until < inf:
            heappush(self._lapses, (until, entry.number, entry.stamp))

    def _promise(self, worth: WorthOverTime, now: float) -> tuple[float, float]:
        """Such a number, and until when it holds."""
        weight, first_s = self._weight, self._first_s
        steady = worth.steady_until(now, first_s)
        if weight == 1.0 or first_s == 0.0:
            value = worth.at(now, weight, first_s)
            return value if steady > now else value * ROUNDING, inf
        if steady > now:
            number, until = worth.at(now, weight, first_s), steady
        else:
            until = now + first_s
            number = worth.most(now, until, weight, first_s)
        if number <= FAR * self._level:
            return self._lasting(worth, now, number, until)
        if steady > now:
            return number, until
        flat = FLAT * number
        for_ever = worth.most(now, inf, weight, first_s, flat)
        return (for_ever, inf) if for_ever <= flat else (number, until)

    def _lasting(
        self, worth: WorthOverTime, now: float, number: float, until: float
    ) -> tuple[float, float]:
        """The longest span after this in which the number stays below what is being sent."""
        weight, first_s, far, start = self._weight, self._first_s, FAR * self._level, until
        if (for_ever := worth.roughly_most(now, inf, weight, first_s)) <= far:
            return for_ever, inf
        for span in SPANS:
            end = start + span * first_s
            if span < LONG:
                higher = worth.most(now, end, weight, first_s, far)
            else:
                higher = worth.roughly_most(now, end, weight, first_s)
            if higher > far:
                break
            number, until = higher, end
        return number, until

    # ---- what the order rests on

    def _draw(self, entry: _Entry) -> None:
        """The curves of an entry, by what is known of the ways."""
        parcel = entry.parcel
        curves = curves_of(parcel, self._prospects)
        entry.worth = WorthOverTime(curves)
        if self._options.delete != "none" and not must_arrive(parcel):
            doomed_at = doomed_from(curves, self._options.unlikely)
            if doomed_at < inf:
                heappush(self._dooms, (doomed_at, entry.number, self._version))

    def _keep_up(self, now: float) -> None:
        """Value all anew where what they were valued by no longer holds."""
        first_s = self._options.postponement * self._size_bytes * self._prospects.s_per_byte
        ways_changed = self._prospects.version != self._version
        first_changed = abs(first_s - self._first_s) > FIRST_CHANGE * self._first_s
        clock_set_back = now < self._now
        self._now = now
        if ways_changed:
            self._version, self._dooms = self._prospects.version, []
        if first_changed:
            self._first_s = first_s
        if ways_changed or clock_set_back or (first_changed and self._weight < 1.0):
            self._place_all(now, ways_changed)
        else:
            self._clear_away()

    def _place_all(self, now: float, ways_changed: bool) -> None:
        self._best, self._lapses = [], []
        for entry in self._entries.values():
            if ways_changed:
                self._draw(entry)
            self._place(entry, now)

    def _clear_away(self) -> None:
        """Void places vanish when they come to the top; those that never do would pile up."""
        entries = self._entries
        for heap in (self._best, self._lapses):
            if len(heap) > VOID_PLACES + 2 * len(entries):
                heap[:] = [p for p in heap if p[1] in entries and entries[p[1]].stamp == p[2]]
                heapify(heap)
        if len(self._dooms) > VOID_PLACES + 2 * len(entries):
            self._dooms = [place for place in self._dooms if place[1] in entries]
            heapify(self._dooms)
