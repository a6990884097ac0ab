"""A live run is followed while it goes on: by its clients, and by what its brokers report."""

import asyncio
import tomllib
from collections.abc import Callable
from pathlib import Path

from tidings.live.clock import wall_clock
from tidings.scenarios.read import parse
from tidings.scenarios.set_up import set_up
from tidings.testbed.plan import plan
from tidings.testbed.processes import BrokerProcess
from tidings.testbed.run import LiveRun

WITHIN_S = 120.0  # several Pythons start, and others want the processor too

# b2 has all the time it needs, b3 has none.
SCENARIO = """
[run]
name = "two"
seconds = 100000
start_s = 0.1
[topology]
kind = "full-mesh"
brokers = 3
delay_ms = [20.0, 30.0]
[live]
mqtt_port = 0
[[workload.publisher]]
broker = "b1"
topic = "t"
rate_per_s = 50.0
[[workload.subscriber]]
broker = "b2"
topic = "t"
deadline_ms = 100000.0
[[workload.subscriber]]
broker = "b3"
topic = "t"
deadline_ms = 5.0
late = "drop"
"""


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not holds():
            await asyncio.sleep(0.02)


def test_what_comes_in_time_and_what_is_dropped_is_known_while_it_runs(tmp_path: Path) -> None:
    setup = set_up(parse(tomllib.loads(SCENARIO), "two.toml", "."))

    async def main() -> None:
        run = LiveRun(plan(setup, "r", tmp_path / "traces"), wall_clock())
        found, overlay = run.traffic.punctuality, run.overlay
        try:
            await run.overlay.start()
            await run.connect()
            run.begin(endless=True)
            await until(lambda: found.on_time >= 10)
            await until(lambda: overlay.dropped["expired"] >= 10)
            assert found.on_time == run.traffic.received  # all of it for b2
            run.traffic.stop_publishing()
            await until(lambda: found.on_time == run.traffic.published)
            found.settle(run.clock() + 200.0)
            assert (found.late, found.lost) == (0, run.traffic.published)
            assert found.ratio() == 0.5
        finally:
            await run.stop()

    asyncio.run(main())


def test_what_a_broker_dropped_before_it_died_still_counts(tmp_path: Path) -> None:
    setup = set_up(parse(tomllib.loads(SCENARIO), "two.toml", "."))
    config = plan(setup, "r", tmp_path / "traces").brokers["b1"]

    async def main() -> None:
        broker = BrokerProcess(config, tmp_path / "b1.toml")
        broker.status = {"dropped": {"expired": 3}}
        try:
            await broker.start(incarnation=2)
            await until(lambda: "dropped" in broker.status)
            assert (broker.status["dropped"], broker.dropped) == ({}, {"expired": 3})
        finally:
            await broker.kill()

    asyncio.run(main())
