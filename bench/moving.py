"""What is lost, and how late is the rest, where a link is replaced every half second for a minute?

`scenarios/moving.toml` with real brokers, each a process of its own, beside the simulator's run of
the same schedule. Of each strategy: the part that is delivered and the part that is in time, in
percent, and what half and 99 % of the messages need. At the end every broker has to have the links
of the schedule, and to know all subscriptions.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from _report import Line, line, run

from tidings.core.trace import TABLES
from tidings.live.clock import wall_clock
from tidings.scenarios.read import load
from tidings.scenarios.set_up import set_up
from tidings.sim.setup import Setup
from tidings.sim.world import simulate
from tidings.testbed.plan import plan
from tidings.testbed.run import LiveRun
from tidings.traces.headline import Summary, read_run, summary
from tidings.traces.schemas import arrow_schema

MOVING = Path(__file__).parents[1] / "scenarios" / "moving.toml"
STRATEGIES = ("dcrd", "d-tree")
QUICK = {"run.seconds": 8.0, "run.start_s": 2.0, "run.drain_s": 4.0, "topology.brokers": 6}
LOOK_EVERY_S = 0.1


class Ended(NamedTuple):
    """How a live run ended."""

    found: Summary
    astray: list[str]  # brokers without the links of the schedule, or all subscriptions


def measured(quick: bool) -> list[Line]:
    lines = list[Line]()
    for strategy in STRATEGIES:
        changes = {"broker.strategy": strategy} | (QUICK if quick else {})
        if quick:
            changes |= {"topology.degree": 3, "workload.topics": 4}
        setup = set_up(load(MOVING, changes))
        with tempfile.TemporaryDirectory() as folder:
            theory, ended = _simulated(setup), _live(setup, Path(folder))
        lines += _lines(strategy, len(setup.moves), theory, ended)
    return lines


def _lines(strategy: str, moves: int, theory: Summary, ended: Ended) -> list[Line]:
    practice, astray = ended
    notes = [f"{practice.expected:,} expected, {moves} links came or went; astray: {astray or 0}"]
    figures = {
        "delivered": ("%", 100 * practice.delivery_ratio, 100 * theory.delivery_ratio),
        "in time": ("%", 100 * practice.on_time_ratio, 100 * theory.on_time_ratio),
        "half": ("ms", 1000 * practice.delay_p50_s, 1000 * theory.delay_p50_s),
        "99 %": ("ms", 1000 * practice.delay_p99_s, 1000 * theory.delay_p99_s),
    }
    return [
        line(f"{strategy}, {name}", here, unit, there, here / there, notes=notes * (not place))
        for place, (name, (unit, here, there)) in enumerate(figures.items())
    ]


def _simulated(setup: Setup) -> Summary:
    held: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}
    simulate(setup, sink=lambda table, batch: held[table].append(batch))
    kinds = TABLES.items()
    return summary({t: pa.Table.from_batches(held[t], arrow_schema(kind)) for t, kind in kinds})


def _live(setup: Setup, folder: Path) -> Ended:
    astray = asyncio.run(_run(setup, folder))
    return Ended(summary(read_run(folder, "live")[0]), astray)


async def _run(setup: Setup, folder: Path) -> list[str]:
    """Runs it, and says which brokers did not end as they should."""
    live = LiveRun(plan(setup, "live", folder), clock := wall_clock())
    try:
        await live.overlay.start()
        await live.connect()
        ends_at = live.begin(endless=False)
        while clock() < ends_at:
            live.overlay.check()
            await asyncio.sleep(LOOK_EVERY_S)
        await live.drain()
        return live.overlay.incomplete(len(setup.load.subscriptions))
    finally:
        await live.stop()


if __name__ == "__main__":
    run("moving", __doc__, measured)
