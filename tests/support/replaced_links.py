"""A run of real brokers whose links are replaced under traffic, and what it has to end with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from tidings.live.clock import wall_clock
from tidings.scenarios.read import parse
from tidings.scenarios.set_up import set_up
from tidings.sim.setup import Setup
from tidings.testbed.plan import plan
from tidings.testbed.run import LiveRun
from tidings.traces.headline import Summary, read_run, summary


class Seen(Struct, frozen=True):
    """What came of a live run."""

    links: dict[str, set[str]]  # at its end, as each broker reports
    summary: Summary
    subscriptions: dict[str, int]  # that each broker knows at the end


def run_live(setup: Setup, folder: Path) -> Seen:
    """From start to end; no broker is left behind."""
    return asyncio.run(_run(setup, folder))


async def _run(setup: Setup, folder: Path) -> Seen:
    run = LiveRun(plan(setup, "live", folder), clock := wall_clock())
    try:
        await run.overlay.start()
        assert await run.connect(), "not all links came up before the run"
        ends_at = run.begin(endless=False)
        while clock() < ends_at:
            run.overlay.check()
            await asyncio.sleep(0.1)
        await run.drain()
        brokers = run.overlay.brokers.items()
        links = {name: set(broker.status["links"]) for name, broker in brokers}
        known = {name: broker.status["subscriptions"] for name, broker in brokers}
    finally:
        await run.stop()
    tables, problems = read_run(folder, "live")
    assert not problems
    return Seen(links, summary(tables), known)


def links_at_the_end(setup: Setup) -> dict[str, set[str]]:
    """As the schedule says."""
    there = {(link.a, link.b) for link in setup.overlay.links}
    for move in setup.moves:
        (there.add if move.up else there.discard)((move.a, move.b))
    near: dict[str, set[str]] = {name: set() for name in setup.overlay.brokers}
    for a, b in there:
        near[a].add(b)
        near[b].add(a)
    return near


def a_moving_setup(tables: Mapping[str, Any]) -> Setup:
    return set_up(parse({"live": {"mqtt_port": 0, "flush_s": 0.5}, **tables}, "moving.toml", "."))
