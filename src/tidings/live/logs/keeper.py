"""Which messages does a broker log? Those that its logs subscribe to, as clients named `$log-NAME`.

A log is one more local subscriber: it gets each message that is published on its topics anywhere in
the overlay, once, by the same routes as a client and under a contract (`deadline_ms`, `price` and
`durable` of its table). So it gets what a client would get: a message that was lost, or dropped
because it was late, is in no log. Messages wait in memory for at most `flush_s` and are then
written by a thread, so that the broker never waits for the disk. A log that cannot be written stops
and says so once; the broker goes on without it.
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
from tidings.live.mqtt.deliveries import RECIPIENTS_BYTES, Deliveries, set_bytes

logger = logging.getLogger("tidings.log")


class KeptLog:
    """A log, its table in the configuration, and its subscription."""

    def __init__(self, broker: str, config: Log, kept: MessageLog) -> None:
        self.config, self.kept, self.reported_stop = config, kept, False
        # No subscription of a client has such an id: theirs contain a colon and a filter.
        contract = Contract(config.deadline_ms / 1000, config.price, durable=config.durable)
        subscription_id = f"{broker}/$log-{config.name}"
        self.wish = Subscription(subscription_id, broker, config.topic, "", contract)

    def status(self) -> dict[str, Any]:
        """What a reader wants to know before it reads."""
        return {
            "log": self.config.name,
            "id": self.kept.id,
            "topic": self.config.topic,
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
        self._known = BoundedCache[tuple[str, ...], tuple[MessageLog, ...]](RECIPIENTS_BYTES)

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
        return self._known.keep(takers, logs, set_bytes(takers))


class Logs:
    """All logs of one broker."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        """Opens them, or raises a `LogError` with none left open."""
        self._clock, self.by_name = clock, dict[str, KeptLog]()
        try:
            for table in config.log:
                folder = config.log_folder(table.name)
                kept = MessageLog(folder, table.keep_bytes, table.keep_s, table.fsync)
                self.by_name[table.name] = KeptLog(config.name, table, kept)
        except LogError:
            self._close()
            raise
        self._writer = ThreadPoolExecutor(1, "log")
        self._flushers: list[asyncio.Task[None]] = []

    def deliveries(self) -> Deliveries:
        """What the driver gives the broker's deliveries to, so that logs get theirs."""
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
        with driver.round:
            for entry in self.by_name.values():
                if cut_bytes := entry.kept.cut_bytes:
                    words = "log %s: %d bytes that a crash had left unfinished are cut off"
                    logger.warning(words, entry.config.name, cut_bytes)
                driver.carry_out(driver.broker.subscribe(entry.wish, now), now)
                self._flushers.append(asyncio.create_task(self._keep_flushing(entry, driver)))

    async def stop(self) -> None:
        """All that was logged is on the disk when this returns."""
        for flusher in self._flushers:
            flusher.cancel()
        for entry in self.by_name.values():
            await self._flush(entry)
        self._writer.shutdown()
        self._close()

    async def _keep_flushing(self, entry: KeptLog, driver: Driver) -> None:
        while not entry.reported_stop:
            await asyncio.sleep(entry.config.flush_s)
            await self._flush(entry)
            if entry.kept.stopped:
                self._end(entry, driver)

    async def _flush(self, entry: KeptLog) -> None:
        records = entry.kept.take()
        if records or entry.config.keep_s < inf:
            loop = asyncio.get_running_loop()
            writing = loop.run_in_executor(self._writer, entry.kept.write, records)
            await asyncio.shield(writing)  # cancelled or not, what was taken is written

    def _end(self, entry: KeptLog, driver: Driver) -> None:
        """Unsubscribes for a log that has stopped, and reports it."""
        entry.reported_stop = True
        words = "log %s has stopped: %s. The broker goes on; start it again when there is room."
        logger.error(words, entry.config.name, entry.kept.stopped)
        now = self._clock()
        driver.carry_out(driver.broker.unsubscribe(entry.wish.id, now), now)

    def _close(self) -> None:
        for entry in self.by_name.values():
            entry.kept.close()
