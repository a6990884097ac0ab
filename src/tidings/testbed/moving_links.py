"""How do live links come and go by a schedule? Both ends of each are told at its instants.

The end with the smaller name dials when a link appears; when one is gone, both cut it at once. A
broker that is not there is told nothing; when it is back, it is told which links it has now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from msgspec import Struct

from tidings.live.clock import Clock
from tidings.sim.moves import Move
from tidings.testbed.processes import BrokerProcess

Ends = tuple[str, str]


class LinkSchedule(Struct, frozen=True):
    """The links of a run that come and go, in seconds since it began."""

    at_first: tuple[Ends, ...] = ()
    moves: tuple[Move, ...] = ()


class MovingLinks:
    """The links of a run as they are now."""

    def __init__(
        self, brokers: Mapping[str, BrokerProcess], schedule: LinkSchedule, clock: Clock
    ) -> None:
        self._brokers, self._schedule, self._clock = brokers, schedule, clock
        self._there = dict.fromkeys(schedule.at_first)

    def near(self, broker: str) -> set[str]:
        """To whom it has links now."""
        return {b if a == broker else a for a, b in self._there if broker in (a, b)}

    def tell_all(self) -> None:
        """All brokers have started."""
        self._tell(self._there)

    def tell_again(self, broker: str) -> None:
        """It has started again."""
        self._tell(ends for ends in self._there if broker in ends)

    async def follow(self, started_at: float) -> None:
        """Makes all moves, each at its time."""
        for move in self._schedule.moves:
            await asyncio.sleep(max(0.0, started_at + move.at - self._clock()))
            ends = move.a, move.b
            if move.up:
                self._there[ends] = None
                self._tell([ends])
            else:
                self._there.pop(ends, None)
                for one, other in (ends, ends[::-1]):
                    self._brokers[one].say({"unlink": other})

    def _tell(self, links: Iterable[Ends]) -> None:
        for a, b in links:
            if self._brokers[a].is_there and self._brokers[b].is_there:
                self._brokers[a].say({"link": b})
                self._brokers[b].say({"link": a})
