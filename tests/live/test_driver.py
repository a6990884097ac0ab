"""A round is settled at its end, and only there, whatever a caller does."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tidings.broker.broker import Broker
from tidings.broker.effects import Effect, Record, Send
from tidings.broker.frames import Ack
from tidings.broker.settings import Settings
from tidings.core.trace import Dropped, Reason
from tidings.live.clock import wall_clock
from tidings.live.driver import Driver
from tidings.live.mqtt.deliveries import Deliveries
from tidings.live.store import MessageStore
from tidings.traces.live_files import TraceFiles

ANSWER: list[Effect] = [Send("a", Ack((1,)), 64, 1)]


class Transport:
    """Counts what is written at once."""

    def __init__(self) -> None:
        self.writes: list[int] = []

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.writes.append(len(data))


def written(folder: Path, act: Callable[[Driver], None]) -> list[int]:
    """How many answers each write held, of a driver with one neighbour."""
    transport = Transport()

    async def main() -> None:
        trace, store = TraceFiles(folder, "run", "b"), MessageStore(folder / "b.journal")
        broker = Broker("b", Settings(), {"a": None})
        driver = Driver(broker, wall_clock(), trace, Deliveries(), store, lambda: None)
        driver.add_wire("a").connected(cast(Any, transport))
        act(driver)
        driver.close()
        trace.close()
        store.close()

    asyncio.run(main())
    return [size_bytes // min(transport.writes) for size_bytes in transport.writes]


def test_what_is_carried_out_alone_leaves_at_once(tmp_path: Path) -> None:
    def act(driver: Driver) -> None:
        driver.carry_out(ANSWER, 0.0)
        driver.carry_out(ANSWER, 0.0)

    assert written(tmp_path, act) == [1, 1]


def test_what_is_carried_out_in_one_round_leaves_together_at_its_end(tmp_path: Path) -> None:
    def act(driver: Driver) -> None:
        driver.carry_out(ANSWER, 0.0)
        with driver.round:
            driver.carry_out(ANSWER, 0.0)
            driver.carry_out(ANSWER, 0.0)

    assert written(tmp_path, act) == [1, 2]


def test_copies_that_are_given_up_are_counted_by_their_reasons(tmp_path: Path) -> None:
    counted: dict[str, int] = {}

    def act(driver: Driver) -> None:
        given_up = (Reason.EXPIRED, Reason.NO_ROUTE, Reason.EXPIRED)
        rows = [Dropped(0.0, "b", 1, reason, ("a",)) for reason in given_up]
        driver.carry_out([*map(Record, rows), *ANSWER], 0.0)
        counted.update(driver.dropped)

    assert written(tmp_path, act) == [1]
    assert counted == {"expired": 2, "no-route": 1}


def test_a_round_that_ends_with_a_fault_is_settled_all_the_same(tmp_path: Path) -> None:
    def act(driver: Driver) -> None:
        with suppress(ValueError), driver.round:
            driver.carry_out(ANSWER, 0.0)
            raise ValueError("nonsense")
        driver.carry_out(ANSWER, 0.0)

    assert written(tmp_path, act) == [1, 1]
