"""`tidings up`: a scenario as a live overlay on this machine."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from rich.console import Console

from tidings.cli.choice import Changes, choose
from tidings.cli.exit_codes import FAILED, INTERRUPTED
from tidings.cli.options import Json
from tidings.cli.screens.up import Outcome, RunProgress, report, show_brokers, show_result
from tidings.core.contract import Subscription
from tidings.core.errors import ConfigError
from tidings.live.clock import wall_clock
from tidings.sim.scenario import Speaker
from tidings.sim.workload import Publication, publications
from tidings.testbed.overlay import Overlay
from tidings.testbed.plan import Plan, plan
from tidings.testbed.processes import BrokerDied
from tidings.testbed.traffic import Place, Traffic, client_name, publication
from tidings.traces.headline import read_run

BEGIN_IN_S = 0.2  # until every broker has heard when the run began
LOOK_EVERY_S = 0.1
FOREVER_S = 30 * 86_400.0  # drawn faults are planned beforehand, so even this has an end


def up(
    scenario: Annotated[Path, typer.Argument(help="A scenario file")] = Path(
        "scenarios/harmony.toml"
    ),
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
    setup = choose(scenario, change, strategy, None, FOREVER_S if forever else seconds)
    chosen = setup.scenario
    run = f"{chosen.run.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    console = Console(quiet=quiet or json)
    with ExitStack() as ports, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        planned = plan(setup, run, traces or Path(chosen.live.traces), ports)
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


async def _run(planned: Plan, endless: bool, speak: bool, console: Console) -> Outcome:
    """The whole run. Whatever happens, no broker is left behind."""
    clock, loop = wall_clock(), asyncio.get_running_loop()
    overlay = Overlay(planned.brokers, planned.traces / ".brokers" / planned.run, clock)
    traffic, interrupted = Traffic(clock), asyncio.Event()
    preparing = asyncio.create_task(_prepare(planned, overlay, traffic, speak, console))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    try:
        if not await _finished(preparing, interrupted):
            print("tidings: interrupted before the run began", file=sys.stderr)
            raise typer.Exit(INTERRUPTED)
        started_at = clock() + BEGIN_IN_S
        overlay.begin(started_at, planned.broker_outages)
        if speak:
            _speak(planned, traffic, started_at)
        run = planned.scenario.run
        end_at = inf if endless else started_at + run.start_s + run.seconds
        await _watch(overlay, traffic, interrupted, RunProgress(console, clock, end_at))
        traffic.hush()
        await asyncio.sleep(run.drain_s)
        overlay.check()
    except BrokerDied as death:
        print(f"tidings: {death}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    finally:
        await traffic.stop()
        await overlay.stop()
    return Outcome(traffic, overlay.lost_trace_rows)


async def _prepare(
    planned: Plan, overlay: Overlay, traffic: Traffic, speak: bool, console: Console
) -> None:
    """Brokers, links, clients and subscriptions: all there when this returns."""
    await overlay.start()
    show_brokers(console, planned, overlay)
    wishes = planned.load.subscriptions if speak else ()
    by_client: dict[tuple[str, str], list[Subscription]] = {}
    for wish in wishes:
        by_client.setdefault((wish.broker, client_name(wish)), []).append(wish)
    for (broker, name), own in by_client.items():
        traffic.connect(name, _place(planned, overlay, broker), own)
    for index, publisher in enumerate(planned.load.publishers if speak else ()):
        traffic.connect(_publisher(index), _place(planned, overlay, publisher.broker))
    while not await traffic.ready():
        overlay.check()
    if refused := traffic.refused():
        raise ConfigError(planned.scenario.source, "workload", refused, "what brokers grant")
    if not await overlay.complete(len(wishes)):
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


def _speak(planned: Plan, traffic: Traffic, started_at: float) -> None:
    """Every publisher speaks when the scenario says."""
    clients = {client.name: client for client in traffic.clients}
    for index, publisher in enumerate(planned.load.publishers):
        own = publications(planned.scenario, index, publisher)
        traffic.speak(clients[_publisher(index)], _packets(publisher, own, started_at))


def _packets(
    publisher: Speaker, own: Iterator[Publication], started_at: float
) -> Iterator[tuple[float, bytes]]:
    """What one publisher says, as packets with their instants; often it is the same again."""
    payload, packet = bytes(publisher.payload_bytes), lru_cache(maxsize=1)(publication)
    for each in own:
        yield started_at + each.at, packet(publisher.topic, payload, each.contract, each.properties)


async def _watch(
    overlay: Overlay, traffic: Traffic, interrupted: asyncio.Event, progress: RunProgress
) -> None:
    """Shows how it goes until the time is up, or somebody has seen enough."""
    with progress:
        while not interrupted.is_set() and progress.show(traffic):
            overlay.check()
            await asyncio.sleep(LOOK_EVERY_S)


def _publisher(index: int) -> str:
    return f"publisher-{index + 1}"


def _place(planned: Plan, overlay: Overlay, broker: str) -> Place:
    return planned.scenario.live.host, overlay.brokers[broker].mqtt_port
