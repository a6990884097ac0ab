"""`tidings up`: a scenario as a live overlay on this machine."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from rich.console import Console

from tidings.cli.choice import Changes, ScenarioName, choose
from tidings.cli.exit_codes import FAILED, INTERRUPTED
from tidings.cli.options import Json
from tidings.cli.screens.code import code_here
from tidings.cli.screens.up import Outcome, RunProgress, report, show_brokers, show_result
from tidings.live.clock import wall_clock
from tidings.live.config import check_strategies
from tidings.sim.scenario import Scenario
from tidings.testbed.plan import Plan, plan
from tidings.testbed.processes import BrokerDied
from tidings.testbed.run import LiveRun
from tidings.traces.headline import read_run

LOOK_EVERY_S = 0.1
FOREVER_S = 30 * 86_400.0  # drawn faults are planned beforehand, so even this has an end


def up(
    scenario: ScenarioName = "harmony",
    seconds: Annotated[
        float | None, typer.Option(help="How long to publish, instead of the file's run.seconds")
    ] = None,
    strategy: Annotated[str, typer.Option(help="Routing strategy, instead of the file's")] = "",
    forever: Annotated[
        bool, typer.Option("--forever", help="Go on until Ctrl-C, and publish all the time")
    ] = False,
    change: Changes = None,
    traffic: Annotated[
        bool, typer.Option(help="Publish the scenario's traffic, or leave that to your clients")
    ] = True,
    traces: Annotated[
        Path | None, typer.Option(help="Folder for trace rows, instead of the file's live.traces")
    ] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the result")] = False,
) -> None:
    """Bring a scenario up on this machine: real brokers, emulated links, real MQTT clients.

    Each broker is a process of its own with an MQTT port that any client can use meanwhile. Ends
    after --seconds of publishing (or run.seconds of the file), or with Ctrl-C, and prints what each
    subscriber got.
    """
    lasting_s = FOREVER_S if forever else seconds
    setup = choose(scenario, change, strategy, None, lasting_s, check=_check_live)
    chosen = setup.scenario
    run = f"{chosen.run.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    console = Console(quiet=quiet or json)
    with ExitStack() as ports, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        planned = plan(setup, run, traces or Path(chosen.live.traces), ports)
        console.print(code_here(), soft_wrap=True, highlight=False)
        outcome = runner.run(_run(planned, forever, traffic, console))
    tables, problems = read_run(planned.traces, planned.run)
    if json:
        print(msgspec.json.encode(report(planned, outcome, tables)).decode())
    else:
        show_result(Console(), planned, outcome, tables)
    for problem in problems:
        print(f"tidings: {problem} So the result is not whole.", file=sys.stderr)
    if outcome.lost_trace_rows:
        print(
            f"tidings: {outcome.lost_trace_rows:,} trace rows were lost, so the result is not "
            f"whole: see above what the brokers say of {planned.traces}.",
            file=sys.stderr,
        )
    if problems or outcome.lost_trace_rows:
        raise typer.Exit(FAILED)


def _check_live(scenario: Scenario) -> None:
    check_strategies(scenario.broker, scenario.policy, scenario.source)


async def _run(planned: Plan, endless: bool, with_traffic: bool, console: Console) -> Outcome:
    """The whole run. Whatever happens, no broker is left behind."""
    run, interrupted = LiveRun(planned, wall_clock(), with_traffic), asyncio.Event()
    preparing = asyncio.create_task(_prepare(run, console))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    try:
        if not await _finished(preparing, interrupted):
            print("tidings: interrupted before the run began", file=sys.stderr)
            raise typer.Exit(INTERRUPTED)
        progress = RunProgress(console, run.clock, run.begin(endless))
        await _watch(run, interrupted, progress)
        await run.drain()
    except BrokerDied as death:
        print(f"tidings: {death}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    finally:
        await run.stop()
    return Outcome(run.traffic, run.overlay.lost_trace_rows)


async def _prepare(run: LiveRun, console: Console) -> None:
    """Brokers, links, clients and subscriptions: all there when this returns."""
    await run.overlay.start()
    show_brokers(console, run.planned, run.overlay)
    if not await run.connect():
        console.print("Not every broker has all its links yet; the run begins without them.")


async def _finished(task: asyncio.Task[None], interrupted: asyncio.Event) -> bool:
    """Waits for the task; false, and the task is cancelled, if somebody interrupts it."""
    waiting = asyncio.create_task(interrupted.wait())
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        task.result()
        return True
    task.cancel()
    return False


async def _watch(run: LiveRun, interrupted: asyncio.Event, progress: RunProgress) -> None:
    """Shows how it goes until the time is up, or somebody has seen enough."""
    with progress:
        while not interrupted.is_set() and progress.show(run.traffic, run.overlay.dropped):
            run.overlay.check()
            await asyncio.sleep(LOOK_EVERY_S)
