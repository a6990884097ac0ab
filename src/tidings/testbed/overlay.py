"""How do brokers become an overlay, and fail on schedule?

All start at once; the overlay is complete when every broker has all its links and knows all
subscriptions. From the instant at which the run begins, brokers are killed and started again as
their outages say, and links come and go by their schedule.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from math import inf
from pathlib import Path

from msgspec.structs import replace

from tidings.live.clock import Clock
from tidings.live.config import BrokerConfig
from tidings.testbed.moving_links import LinkSchedule, MovingLinks
from tidings.testbed.processes import LOOK_EVERY_S, BrokerProcess

COMPLETE_WITHIN_S = 60.0

Intervals = tuple[tuple[float, float], ...]
NO_SCHEDULE = LinkSchedule()
NOBODY: Mapping[str, tuple[float, ...]] = {}


class Overlay:
    """All brokers of a run, each in its own process."""

    def __init__(
        self,
        configs: Mapping[str, BrokerConfig],
        folder: Path,
        clock: Clock,
        schedule: LinkSchedule = NO_SCHEDULE,
    ) -> None:
        """`folder` is for the brokers' configuration files and what they store. A broker that fails
        and returns finds its messages there; each run has a folder of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        self.brokers = {
            name: BrokerProcess(
                replace(config, store=str(folder.absolute())), folder / f"{number:03}.toml"
            )
            for number, (name, config) in enumerate(configs.items())
        }
        self._clock = clock
        self._links = MovingLinks(self.brokers, schedule, clock)
        self._faults: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Returns when every broker listens."""
        await asyncio.gather(*(broker.start(incarnation=1) for broker in self.brokers.values()))
        self._links.tell_all()

    async def complete(self, subscriptions: int) -> bool:
        """Waits until all links are up and all subscriptions known everywhere, if they ever are."""
        loop = asyncio.get_running_loop()
        end_at = loop.time() + COMPLETE_WITHIN_S
        while self.incomplete(subscriptions):
            self.check()  # of all brokers: others would wait for ever for one that died
            if loop.time() > end_at:
                return False
            await asyncio.sleep(LOOK_EVERY_S)
        return True

    def incomplete(self, subscriptions: int) -> list[str]:
        """Brokers that have other links than they should have now, or do not know all
        subscriptions."""
        return [name for name in self.brokers if not self._has_all(name, subscriptions)]

    def begin(
        self,
        started_at: float,
        outages: Mapping[str, Intervals],
        leaving: Mapping[str, tuple[float, ...]] = NOBODY,
    ) -> None:
        """The run begins then; brokers fail by this schedule, in seconds from there, but for those
        that leave in good order at these instants. Links come and go from now on."""
        for name, broker in self.brokers.items():
            broker.begin(started_at)
            if outages.get(name):
                failing = self._fail_and_return(name, started_at, outages[name], leaving)
                self._faults.append(asyncio.create_task(failing))
        self._faults.append(asyncio.create_task(self._links.follow(started_at)))

    def check(self) -> None:
        """Raises if something went wrong that was not meant to."""
        for broker in self.brokers.values():
            broker.check()
        for task in self._faults:
            if task.done():
                task.result()

    @property
    def lost_trace_rows(self) -> int:
        return sum(broker.lost_trace_rows for broker in self.brokers.values())

    @property
    def dropped(self) -> Counter[str]:
        """Copies of messages that brokers have given up so far, by reason."""
        return sum((broker.dropped for broker in self.brokers.values()), Counter[str]())

    async def stop(self) -> None:
        """Ends all brokers in good order; their traces are complete when this returns."""
        for task in self._faults:
            task.cancel()
        await asyncio.gather(*self._faults, return_exceptions=True)
        await asyncio.gather(*(broker.stop() for broker in self.brokers.values()))

    async def _fail_and_return(
        self,
        name: str,
        started_at: float,
        outages: Intervals,
        leaving: Mapping[str, tuple[float, ...]],
    ) -> None:
        broker = self.brokers[name]
        for number, (from_s, to_s) in enumerate(outages):
            await asyncio.sleep(max(0.0, started_at + from_s - self._clock()))
            if from_s in leaving.get(name, ()):
                await broker.stop()
            else:
                await broker.kill()
            if to_s == inf:
                return
            await asyncio.sleep(max(0.0, started_at + to_s - self._clock()))
            await broker.start(incarnation=2 + number, started_at=started_at)
            self._links.tell_again(name)

    def _has_all(self, name: str, subscriptions: int) -> bool:
        """Has a broker all links, and does it know all subscriptions?"""
        status, config = self.brokers[name].status, self.brokers[name].config
        wanted = {near.name for near in config.neighbour if near.awaited} | self._links.near(name)
        known = status.get("subscriptions", -1)
        return set(status.get("links", ())) == wanted and known >= subscriptions
