"""Which messages does a broker log? Those that its logs subscribe to, as clients named `$log-NAME`.

A log is one more local subscriber: it is handed each message that any broker of the overlay
publishes on its topics, once, after deduplication, by the routes and under the contract of a client
(`deadline_ms`, `price` and `durable` of its table). So it promises what a client gets, and no more:
a message lost on the way, or dropped because it was late, is in no log. What reaches it waits in
memory for at most `flush_s`, and is then written by a thread, so that no disk holds up the broker.
A log that cannot write stops and says so once; the broker goes on without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any

from tidings.broker.effects import Deliver
from tidings.core.cache import BoundedCache
from tidings.core.contract import Contract, Subscription
from tidings.live.clock import Clock
from tidings.live.config import BrokerConfig, Log
from tidings.live.driver import Driver
from tidings.live.logs.message_log import MessageLog
from tidings.live.logs.records import LogError
from tidings.live.mqtt.deliveries import REMEMBERED_RECIPIENTS, Deliveries

log = logging.getLogger("tidings.log")


class KeptLog:
    """A log, and what it was told."""

    def __init__(self, broker: str, told: Log, kept: MessageLog) -> None:
        self.told, self.kept, self.said_stopped = told, kept, False
        # No client's id looks like this: theirs have a colon, and a filter behind it.
        contract = Contract(told.deadline_ms / 1000, told.price, durable=told.durable)
        subscription_id = f"{broker}/$log-{told.name}"
        self.wish = Subscription(subscription_id, broker, told.topic, "", contract)

    def status(self) -> dict[str, Any]:
        """What a reader wants to know before it reads."""
        return {
            "log": self.told.name,
            "id": self.kept.id,
            "topic": self.told.topic,
            "oldest": self.kept.oldest,
            "next": self.kept.next,
            "size_bytes": self.kept.size_bytes,
            "cut_bytes": self.kept.cut_bytes,
            "lost": self.kept.lost,
            "stopped": self.kept.stopped,
        }


class LoggedDeliveries(Deliveries):
    """Deliveries of which some go to logs, and not only to clients."""

    def __init__(self, logs: Iterable[KeptLog], clock: Clock) -> None:
        super().__init__()
        self._clock, self._logs = clock, {entry.wish.id: entry.kept for entry in logs}
        self._known = BoundedCache[tuple[str, ...], tuple[MessageLog, ...]](REMEMBERED_RECIPIENTS)

    def add(self, deliver: Deliver) -> None:
        takers = deliver.subscriptions
        logs = self._known.get(takers)
        if logs is None:
            logs = self._logs_among(takers)
        for kept in logs:
            kept.append(self._clock(), deliver.message, deliver.age_s)
        if len(logs) < len(takers):
            super().add(deliver)

    def _logs_among(self, takers: tuple[str, ...]) -> tuple[MessageLog, ...]:
        logs = tuple(self._logs[taker] for taker in takers if taker in self._logs)
        return self._known.keep(takers, logs)


class Logs:
    """All logs of one broker."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        """Opens them, or raises a `LogError` with none left open."""
        self._clock, self.by_name = clock, dict[str, KeptLog]()
        try:
            for told in config.log:
                folder = config.log_folder(told.name)
                kept = MessageLog(folder, told.keep_bytes, told.keep_s, told.fsync)
                self.by_name[told.name] = KeptLog(config.name, told, kept)
        except LogError:
            self._close()
            raise
        self._writer = ThreadPoolExecutor(1, "log")
        self._flushers: list[asyncio.Task[None]] = []

    def deliveries(self) -> Deliveries:
        """Where the broker's deliveries go, so that logs get theirs."""
        return (
            LoggedDeliveries(self.by_name.values(), self._clock) if self.by_name else Deliveries()
        )

    @property
    def stopped(self) -> list[str]:
        """The names of those that write no more."""
        return [name for name, entry in self.by_name.items() if entry.kept.stopped]

    def start(self, driver: Driver) -> None:
        """Subscribes for them, and writes from now on."""
        now = self._clock()
        for entry in self.by_name.values():
            if cut_bytes := entry.kept.cut_bytes:
                words = "log %s: %d bytes that a crash had left unfinished are cut off"
                log.warning(words, entry.told.name, cut_bytes)
            driver.carry_out(driver.broker.subscribe(entry.wish, now), now)
            self._flushers.append(asyncio.create_task(self._keep_flushing(entry, driver)))
        driver.settle()

    async def stop(self) -> None:
        """All that was logged is on the disk when this returns."""
        for flusher in self._flushers:
            flusher.cancel()
        for entry in self.by_name.values():
            await self._flush(entry)
        self._writer.shutdown()
        self._close()

    async def _keep_flushing(self, entry: KeptLog, driver: Driver) -> None:
        while not entry.said_stopped:
            await asyncio.sleep(entry.told.flush_s)
            await self._flush(entry)
            if entry.kept.stopped:
                self._end(entry, driver)

    async def _flush(self, entry: KeptLog) -> None:
        records = entry.kept.take()
        if records or entry.told.keep_s < inf:
            loop = asyncio.get_running_loop()
            writing = loop.run_in_executor(self._writer, entry.kept.write, records)
            await asyncio.shield(writing)  # what was taken is written, even if nobody waits for it

    def _end(self, entry: KeptLog, driver: Driver) -> None:
        """Nothing more is wanted of the overlay for a log that cannot keep it."""
        entry.said_stopped = True
        words = "log %s has stopped: %s. The broker goes on; start it again when there is room."
        log.error(words, entry.told.name, entry.kept.stopped)
        now = self._clock()
        driver.carry_out(driver.broker.unsubscribe(entry.wish.id, now), now)
        driver.settle()

    def _close(self) -> None:
        for entry in self.by_name.values():
            entry.kept.close()
