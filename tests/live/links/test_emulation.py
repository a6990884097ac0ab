"""Emulated links do to frames what the simulator's links do, in real time."""

import asyncio
from collections.abc import Coroutine
from statistics import median
from typing import Any, TypeVar

import pytest
import uvloop
from support.attempts import in_real_time

from tidings.broker.effects import Send
from tidings.broker.frames import Data, Probe
from tidings.core.links.conditions import Conditions
from tidings.core.links.weather import LinkWeather
from tidings.core.message import Envelope, Message
from tidings.core.rng import Draws
from tidings.live.clock import wall_clock
from tidings.live.links.emulation import Emulation, Origin

T = TypeVar("T")


class Outlet:
    def __init__(self) -> None:
        self.clock = wall_clock()
        self.arrived: list[tuple[float, bytes]] = []
        self.rooms: list[tuple[float, float]] = []

    def put(self, data: bytes) -> None:
        self.arrived.append((self.clock(), data))

    def ready(self, room_bytes: float) -> None:
        self.rooms.append((self.clock(), room_bytes))


def run(doing: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(doing)


def never_early(late_s: list[float]) -> list[float]:
    """What no busy machine excuses."""
    assert min(late_s) > -0.002
    return late_s


def hardly_late(late_s: list[float]) -> None:
    assert max(late_s) < 0.010


def data(message_id: int, size_bytes: int = 100) -> Send:
    envelope = Envelope(Message(message_id, "t", b""), 0.0, (), (), "d-tree")
    return Send("b", Data(message_id, envelope), size_bytes, 1)


def emulated(
    outlet: Outlet, conditions: Conditions, started_ago_s: float | None = 0.0
) -> Emulation:
    origin = Origin(None if started_ago_s is None else outlet.clock() - started_ago_s)
    return Emulation(("a", "b"), conditions, Draws(7), origin, outlet.clock, outlet)


@pytest.mark.timing
def test_frames_arrive_after_the_delay_and_in_order() -> None:
    async def lateness_s() -> list[float]:
        outlet = Outlet()
        link = emulated(outlet, Conditions(0.05))
        sent_at = []
        for number in range(20):
            sent_at.append(outlet.clock())
            link.send(data(number), bytes([number]), sent_at[-1])
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.08)
        assert [frame for _, frame in outlet.arrived] == [bytes([n]) for n in range(20)]
        return [at - sent - 0.05 for (at, _), sent in zip(outlet.arrived, sent_at, strict=True)]

    def judge(late_s: list[float]) -> None:
        assert median(late_s) < 0.003

    in_real_time(lambda _: never_early(run(lateness_s())), judge)


def test_the_same_frames_are_lost_as_in_the_simulator() -> None:
    async def main() -> None:
        outlet, conditions = Outlet(), Conditions(0.0, loss_ratio=0.3)
        link, simulated = emulated(outlet, conditions), LinkWeather("a", "b", conditions, Draws(7))
        for number in range(2_000):
            link.send(data(number), number.to_bytes(2, "big"), outlet.clock())
        await asyncio.sleep(0.05)
        kept = [n for n in range(2_000) if simulated.arrival(100, n, 1, 0.0) is not None]
        assert [int.from_bytes(frame, "big") for _, frame in outlet.arrived] == kept
        assert 1_300 < len(kept) < 1_500

    run(main())


def test_outages_are_counted_from_the_beginning_of_the_run_and_none_before_it() -> None:
    async def main() -> None:
        conditions = Conditions(0.0, failure_probability=1.0)
        for started_ago_s, arrives in ((None, True), (-60.0, True), (0.0, False)):
            outlet = Outlet()
            link = emulated(outlet, conditions, started_ago_s)
            link.send(data(1), b"x", outlet.clock())
            link.send(Send("b", Probe(1), 64, 1), b"y", outlet.clock())
            await asyncio.sleep(0.01)
            assert [frame for _, frame in outlet.arrived] == ([b"x", b"y"] if arrives else [])

    run(main())


@pytest.mark.timing
def test_a_limited_link_takes_one_parcel_at_a_time_at_its_rate() -> None:
    async def lateness_s() -> list[float]:
        outlet = Outlet()
        link = emulated(outlet, Conditions(0.01, rate_bytes_per_s=10_000))
        assert link.room_bytes == 1.0
        sent_at = outlet.clock()
        link.send(data(1, size_bytes=500), b"x", sent_at)
        await asyncio.sleep(0.1)
        ((ready_at, room_bytes),) = outlet.rooms
        ((arrived_at, _),) = outlet.arrived
        assert room_bytes == 1.0
        return [ready_at - sent_at - 0.05, arrived_at - sent_at - 0.06]

    in_real_time(lambda _: never_early(run(lateness_s())), hardly_late)


def test_conditions_change_at_run_time() -> None:
    async def main() -> None:
        outlet = Outlet()
        link = emulated(outlet, Conditions(0.0, loss_ratio=1.0))
        link.send(data(1), b"lost", outlet.clock())
        link.set_conditions(Conditions(0.0))
        link.send(data(2), b"kept", outlet.clock())
        await asyncio.sleep(0.01)
        assert [frame for _, frame in outlet.arrived] == [b"kept"]

    run(main())


# Rounds of 120 s, so that a slow machine does not slip into the next step.
STEPPED = Conditions(0.0, delay_steps=((30.0, 0.12), (60.0, 0.06)), repeat_s=120.0)


@pytest.mark.timing
@pytest.mark.parametrize("started_ago_s", [5.0, 35.0, 65.0, 125.0, 155.0, 305.0])
def test_a_delay_that_moves_is_the_same_as_in_the_simulator(started_ago_s: float) -> None:
    async def lateness_s() -> list[float]:
        outlet, simulated = Outlet(), LinkWeather("a", "b", STEPPED, Draws(7))
        link = emulated(outlet, STEPPED, started_ago_s)
        sent_at = outlet.clock()
        link.send(data(1), b"data", sent_at)
        link.send(Send("b", Probe(1), 64, 1), b"probe", sent_at)
        await asyncio.sleep(0.15)
        expected_s = simulated.arrival(100, 1, 1, started_ago_s)
        assert expected_s is not None
        assert [frame for _, frame in outlet.arrived] == [b"data", b"probe"]
        return [at - sent_at - (expected_s - started_ago_s) for at, _ in outlet.arrived]

    in_real_time(lambda _: never_early(run(lateness_s())), hardly_late)


def test_a_frame_sent_after_a_step_down_overtakes_one_sent_before_it() -> None:
    async def main() -> None:
        outlet = Outlet()
        link = emulated(outlet, Conditions(0.3, delay_steps=((60.0, 0.0),)), 60.0)
        now = link._origin.started_at + 60.0  # on the step, however long ago we asked for it
        link.send(data(1), b"slow", now - 0.2)  # a moment before the step
        link.send(data(2), b"fast", now)
        await asyncio.sleep(0.2)
        assert [frame for _, frame in outlet.arrived] == [b"fast", b"slow"]

    run(main())


def test_before_the_run_begins_the_delay_is_that_of_its_start() -> None:
    async def main() -> None:
        outlet = Outlet()
        link = emulated(outlet, Conditions(0.0, delay_steps=((1e-9, 60.0),)), None)
        link.send(data(1), b"x", outlet.clock())
        await asyncio.sleep(0.01)
        assert [frame for _, frame in outlet.arrived] == [b"x"]

    run(main())
