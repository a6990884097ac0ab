"""Who wanted this message? Worked out from rows alone: what was published, and who subscribed when.

The audience of a publication are the subscriptions that held at its instant, by the clocks of their
rows: made by then, neither replaced nor ended since, and with a filter and a predicate that match.
No broker's belief comes into it: a subscription counts from the moment it is made, also where the
news of it has not arrived yet.

How
---
A sweep through time keeps what is held at one instant in the index that brokers use, and a plan per
topic until a subscription changes. The sweep may go back: a change is taken back by what the same
subscription asked for before. So rows may come in any order, and those that lie close in time cost
little.

Rows of `Published` that are older than version 4 name whom the publisher's broker believed to be
interested, and those they name are their audience.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow as pa

from tidings.core.cache import BoundedCache
from tidings.core.matching import MatchingIndex, TopicPlan
from tidings.core.matching.rows import Keys
from tidings.core.message import attributes_of
from tidings.core.predicate import Predicate, parse

INTERESTED = pa.list_(pa.field("element", pa.string(), nullable=False))
"""The type of the column that `Audiences.told` adds, `interested`."""
CHANGE_COLUMNS = ("recorded_at", "active", "subscription", "topic", "predicate")
Change = tuple[float, bool, str, str, str]
"""The `CHANGE_COLUMNS` of one `Subscribed` row. Of equal instants an end comes first: who takes a
wish back and states it again at one instant has renewed it."""

PLANS_BYTES = 32 << 20  # of plans kept, of which there is one for each topic
PLAN_BYTES, TAKER_BYTES = 1_000, 50  # of one of them, and of each of those that it names
PARSED_PREDICATES = 10_000  # kept: clients of one kind state the same


class Held:
    """What is asked for at one instant: changed step by step, and asked for each message."""

    def __init__(self) -> None:
        self._index = MatchingIndex()
        self._keys: dict[str, int] = {}
        self._names: list[str] = []  # by key
        self._plans = BoundedCache[str, tuple[TopicPlan, tuple[str, ...]]](PLANS_BYTES)

    def hold(self, subscription: str, topic: str, predicate: str) -> None:
        """It asks for this from now on, and for nothing else."""
        self.release(subscription)
        key = self._keys.setdefault(subscription, len(self._names))
        if key == len(self._names):
            self._names.append(subscription)
        self._index.add(key, topic, _parsed(predicate) if predicate else None)
        self._plans.clear()

    def release(self, subscription: str) -> None:
        """It asks for nothing any more."""
        key = self._keys.get(subscription)
        if key is not None and key in self._index:
            self._index.remove(key)
            self._plans.clear()

    def audience(self, topic: str, attributes: str) -> tuple[str, ...]:
        """The sorted ids of all who want this message; the same object while nothing changes, if no
        predicate has a say in it."""
        planned = self._plans.get(topic)
        if planned is None:
            plan = self._index.plan(topic)
            always = self._named(plan.unconditional)
            size_bytes = PLAN_BYTES + len(topic) + TAKER_BYTES * len(always)
            planned = self._plans.keep(topic, (plan, always), size_bytes)
        plan, always = planned
        if not plan.conditional:
            return always
        return self._named(plan.match(attributes_of(attributes)))

    def _named(self, keys: Keys) -> tuple[str, ...]:
        return tuple(sorted([self._names[key] for key in keys.tolist()]))


class Audience:
    """Who wanted what in one run, at any instant."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._held = Held()
        self._changes: list[Change] = []  # in order; those before `_place` are carried out
        self._place = 0
        self._of: defaultdict[str, list[Change]] = defaultdict(list)  # by subscription, in order
        self.learn(changes)

    def learn(self, changes: Iterable[Change]) -> None:
        """More rows; such as are known already, as copies of files hold them, change nothing."""
        new = sorted({change for change in changes if not self._knows(change)})
        if not new:
            return
        while self._place and self._changes[self._place - 1] > new[0]:
            self._step_back()
        for change in new:
            insort(self._of[change[2]], change)
        self._changes = sorted([*self._changes, *new])

    def of(self, at: float, topic: str, attributes: str) -> tuple[str, ...]:
        """The sorted ids of the subscriptions that wanted a message published at this instant."""
        if attributes.startswith("["):  # see `traces.stored`
            return tuple(msgspec.json.decode(attributes))
        while self._place < len(self._changes) and self._changes[self._place][0] <= at:
            self._step_on()
        while self._place and self._changes[self._place - 1][0] > at:
            self._step_back()
        return self._held.audience(topic, attributes)

    def _knows(self, change: Change) -> bool:
        known = self._of.get(change[2], [])
        place = bisect_left(known, change)
        return place < len(known) and known[place] == change

    def _step_on(self) -> None:
        self._carry_out(self._changes[self._place])
        self._place += 1

    def _step_back(self) -> None:
        self._place -= 1
        change = self._changes[self._place]
        own = self._of[change[2]]
        earlier = bisect_left(own, change) - 1
        if earlier >= 0:
            self._carry_out(own[earlier])
        else:
            self._held.release(change[2])

    def _carry_out(self, change: Change) -> None:
        _, active, subscription, topic, predicate = change
        if active:
            self._held.hold(subscription, topic, predicate)
        else:
            self._held.release(subscription)


class Audiences:
    """Those of the runs that some tables hold."""

    def __init__(self) -> None:
        self._of_run: defaultdict[str, Audience] = defaultdict(Audience)

    def learn(self, subscribed: pa.Table) -> None:
        """More rows of `Subscribed`."""
        changes: defaultdict[str, list[Change]] = defaultdict(list)
        columns = [subscribed[name].to_pylist() for name in ("run", *CHANGE_COLUMNS)]
        for run, *change in zip(*columns, strict=True):
            changes[run].append(tuple(change))
        for run, found in changes.items():
            self._of_run[run].learn(found)

    def told(self, published: pa.Table) -> pa.Table:
        """Rows of `Published` with one more column, `interested`: who should have got it."""
        names = ("run", "recorded_at", "topic", "attributes")
        run, at, topic, attributes = (published[name].to_pylist() for name in names)
        distinct, numbers = list[tuple[str, ...]](), dict[int, int]()
        which = np.zeros(published.num_rows, np.int64)
        for row in np.argsort(published["recorded_at"].to_numpy(), kind="stable").tolist():
            found = self._of_run[run[row]].of(at[row], topic[row], attributes[row])
            number = numbers.setdefault(id(found), len(distinct))
            if number == len(distinct):
                distinct.append(found)  # which also keeps its id from being given again
            which[row] = number
        interested = pa.array(distinct, INTERESTED).take(pa.array(which))
        return published.append_column(pa.field("interested", INTERESTED), interested)


def with_audience(published: pa.Table, subscribed: pa.Table) -> pa.Table:
    """Each publication with those who should have got it, as a column `interested`."""
    audiences = Audiences()
    audiences.learn(subscribed)
    return audiences.told(published)


@lru_cache(maxsize=PARSED_PREDICATES)
def _parsed(predicate: str) -> Predicate:
    return parse(predicate)
