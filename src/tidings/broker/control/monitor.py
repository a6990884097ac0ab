"""Is the link alive, and how fast? Probes ask every neighbour at a steady pace.

A probe that is not answered in time counts as missed; several in a row mean that the link is down,
whatever TCP believes, and the first answer after that means it is up again.
"""

from __future__ import annotations

from math import inf
from zlib import crc32

from tidings.broker.settings import Settings


class _Watch:
    """The probing of one neighbour."""

    __slots__ = ("asked_at", "missed", "next_at", "serial")

    def __init__(self, next_at: float) -> None:
        self.next_at = next_at
        self.asked_at: float | None = None  # of a probe without an answer
        self.serial = 0
        self.missed = 0


class Monitor:
    """When to probe whom, and what silence means."""

    def __init__(self, me: str, settings: Settings) -> None:
        self._me, self._settings = me, settings
        self._watches: dict[str, _Watch] = {}

    def start(self, neighbour: str, now: float) -> None:
        """Ask at once: until the first answer nothing is known."""
        if self._settings.estimates == "measured":
            self._watches[neighbour] = _Watch(now)

    def stop(self, neighbour: str) -> None:
        self._watches.pop(neighbour, None)

    def next_at(self) -> float:
        """When something is to be asked, or an answer is overdue."""
        return min((self._due(watch) for watch in self._watches.values()), default=inf)

    def due(self, now: float) -> list[tuple[str, int]]:
        """The neighbours to probe now, with the probes' serial numbers."""
        asked = []
        for neighbour, watch in sorted(self._watches.items()):
            if watch.asked_at is None and watch.next_at <= now:
                watch.serial += 1
                watch.asked_at = now
                watch.next_at = now + self._pace(neighbour, watch.serial)
                asked.append((neighbour, watch.serial))
        return asked

    def silent(self, now: float) -> list[tuple[str, bool]]:
        """Neighbours whose answer is overdue, and whether that makes the link count as down."""
        overdue = []
        for neighbour, watch in sorted(self._watches.items()):
            if watch.asked_at is not None and self._due(watch) <= now:
                watch.asked_at = None
                watch.missed += 1
                overdue.append((neighbour, watch.missed == self._settings.probes_missed))
        return overdue

    def lost(self, neighbour: str) -> bool:
        """Were so many probes missed in a row that the link counts as down?"""
        watch = self._watches.get(neighbour)
        return watch is not None and watch.missed >= self._settings.probes_missed

    def reached(self, neighbour: str) -> None:
        """An answer has come, though not to a probe of ours."""
        if watch := self._watches.get(neighbour):
            watch.missed = 0

    def answered(self, neighbour: str, serial: int, now: float) -> float | None:
        """The round trip of the probe that this answers, or None if it comes too late."""
        watch = self._watches.get(neighbour)
        if watch is None or watch.asked_at is None or serial != watch.serial:
            return None
        round_trip_s = now - watch.asked_at
        watch.asked_at, watch.missed = None, 0
        return round_trip_s

    def _due(self, watch: _Watch) -> float:
        if watch.asked_at is None:
            return watch.next_at
        return watch.asked_at + self._settings.probe_timeout_s

    def _pace(self, neighbour: str, serial: int) -> float:
        """The period; the first is cut short by a part that belongs to the pair, so that the
        probes of a whole overlay do not march in step."""
        every_s = self._settings.probe_every_s
        if serial > 1:
            return every_s
        return every_s * (0.5 + crc32(f"{self._me}>{neighbour}".encode()) / 2**33)
