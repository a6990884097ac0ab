"""What waits for one link: a queue in the order of the broker's policy, and where contracts name
other policies, a queue for each, which share the link fairly by bytes.

It is crowded long before it is full, so that publishers can be slowed in time. What a deadline will
delete does not count for that: it makes room by itself, and an overloaded link is the daily life of
policies that choose what to delete.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from tidings.broker.settings import Settings
from tidings.core.parcel import Parcel
from tidings.scheduling import POLICIES
from tidings.scheduling.base import Prospects, Queue

# Parts of what the queue may hold, in parcels or bytes that no deadline will delete.
CROWDED_FROM = 0.5
ROOMY_BELOW = 0.25  # so much lower that publishers do not stop and go with every parcel


class Outbox:
    """Parcels on their way out to one neighbour."""

    __slots__ = (
        "_main",
        "_others",
        "_patient_bytes",
        "_patient_parcels",
        "_plain",
        "_prospects",
        "_served",
        "_settings",
        "deletes",
        "size_bytes",
    )

    def __init__(self, settings: Settings, prospects: Prospects) -> None:
        self._settings, self._prospects = settings, prospects
        self._main: Queue = self._queue(settings.scheduling)
        self._others: dict[str, Queue] = {}
        self._served: dict[str, int] = {}  # bytes that left, by policy
        self.size_bytes = 0
        self._patient_parcels = self._patient_bytes = 0  # those that no deadline will delete
        self._plain = settings.scheduling == "fifo"  # others remember what has passed
        # Whether there may be parcels to delete: asking costs time whenever a parcel leaves.
        delete = settings.benefit.delete
        self.deletes = delete == "all" or (
            delete != "none" and settings.scheduling not in ("fifo", "rl", "urgency")
        )

    def __len__(self) -> int:
        return len(self._main) + sum(map(len, self._others.values()))

    def __iter__(self) -> Iterator[Parcel]:
        for queue in (self._main, *self._others.values()):
            yield from queue

    def passes(self, parcel: Parcel) -> bool:
        """Would a parcel that is put in come out next, and nothing else be changed by that?"""
        if self.size_bytes or not self._plain or self.deletes or self._others:
            return False
        return not parcel.message.contract.scheduling

    def full(self) -> bool:
        """Does it take no more?"""
        if not self.size_bytes:  # nearly always, and asked for every copy
            return False
        settings = self._settings
        return self.size_bytes >= settings.queue_bytes or len(self) >= settings.queue_parcels

    def crowded(self) -> bool:
        """Is it time to slow down whoever fills it?"""
        return self._holds(CROWDED_FROM)

    def roomy(self) -> bool:
        """May those who were slowed go on?"""
        return not self._holds(ROOMY_BELOW)

    def _holds(self, part: float) -> bool:
        settings = self._settings
        return (
            self._patient_parcels >= part * settings.queue_parcels
            or self._patient_bytes >= part * settings.queue_bytes
        )

    def push(self, parcel: Parcel, now: float) -> None:
        self.size_bytes += parcel.size_bytes
        if parcel.expires_at == inf:
            self._patient_parcels += 1
            self._patient_bytes += parcel.size_bytes
        policy = parcel.message.contract.scheduling
        queue = self._main if not policy else self._chosen(policy)
        queue.push(parcel, now)

    def pop(self, now: float) -> Parcel | None:
        """The parcel that is to leave first."""
        parcel = self._main.pop(now) if not self._others else self._fairest(now)
        if parcel is not None:
            self._taken_out(parcel)
        return parcel

    def doomed(self, now: float) -> Iterator[Parcel]:
        """Parcels that are not worth sending any more, taken out."""
        for queue in (self._main, *self._others.values()):
            for parcel in queue.doomed(now):
                self._taken_out(parcel)
                yield parcel

    def _taken_out(self, parcel: Parcel) -> None:
        self.size_bytes -= parcel.size_bytes
        if parcel.expires_at == inf:
            self._patient_parcels -= 1
            self._patient_bytes -= parcel.size_bytes

    # ---- several policies on one link

    def _queue(self, policy: str) -> Queue:
        return POLICIES[policy](self._prospects, self._settings.benefit)

    def _chosen(self, policy: str) -> Queue:
        """The queue of a policy that a contract names; an unknown one is the broker's own."""
        if policy == self._settings.scheduling or policy not in POLICIES:
            return self._main
        if policy not in self._others:
            self._others[policy] = self._queue(policy)
            self.deletes = self._settings.benefit.delete != "none"
        return self._others[policy]

    def _fairest(self, now: float) -> Parcel | None:
        """From the queue that has had least of the link; one that was idle has no claim to what it
        did not use."""
        queues = {self._settings.scheduling: self._main} | self._others
        busy = {policy: queue for policy, queue in queues.items() if queue}
        if not busy:
            return None
        least = min(self._served.get(policy, 0) for policy in busy)
        for policy in queues.keys() - busy.keys():
            self._served[policy] = max(self._served.get(policy, 0), least)
        policy = min(busy, key=lambda policy: (self._served.get(policy, 0), policy))
        parcel = busy[policy].pop(now)
        if parcel is not None:
            self._served[policy] = self._served.get(policy, 0) + parcel.size_bytes
        return parcel
