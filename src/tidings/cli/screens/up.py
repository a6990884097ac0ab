"""What does a person see of a live run? Where to connect, and how it went for each subscriber."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from math import inf
from typing import Any

import msgspec
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from tidings import CODE
from tidings.cli.screens.sheet import Sheet
from tidings.cli.screens.tables import metrics_table
from tidings.live.clock import Clock
from tidings.testbed.overlay import Overlay
from tidings.testbed.plan import Plan
from tidings.testbed.traffic import Traffic
from tidings.traces.headline import per_subscriber, summary

BAR_WIDTH = 20  # the words beside it need the room


class Outcome(msgspec.Struct, frozen=True):
    """What there is to know of a run beside its trace."""

    traffic: Traffic
    lost_trace_rows: int


def show_brokers(console: Console, plan: Plan, overlay: Overlay) -> None:
    """Where every broker listens, and what to type to see a message travel."""
    host = plan.scenario.live.host
    sheet = Sheet(f"{plan.scenario.run.name}: {len(overlay.brokers)} brokers on {host}")
    sheet.add_texts("broker")
    sheet.add_numbers("MQTT port")
    sheet.add_texts("links to")
    for name, broker in overlay.brokers.items():
        links = ", ".join(neighbour.name for neighbour in broker.config.neighbour)
        sheet.add_row(name, str(broker.mqtt_port), links)
    console.print(sheet)
    brokers = list(overlay.brokers)
    first, last = brokers[0], brokers[-1]
    here, there = overlay.brokers[first].mqtt_port, overlay.brokers[last].mqtt_port
    console.print(f"While it runs, listen at {last} and speak at {first}, in two other terminals:")
    for words in (
        f"tidings sub --host {host} -p {there} -t 'hello/#' -v",
        f"tidings pub --host {host} -p {here} -t hello/world hi",
    ):
        console.print(f"  {words}", highlight=False, soft_wrap=True)


def report(plan: Plan, outcome: Outcome, tables: dict[str, pa.Table]) -> dict[str, Any]:
    """Everything there is to say, for a script."""
    traffic = outcome.traffic
    return {
        "scenario": plan.scenario.run.name,
        "strategy": plan.scenario.broker.strategy,
        "run": plan.run,
        "code": CODE,
        "traces": str(plan.traces),
        "published": traffic.published,
        "unpublished": traffic.unpublished,
        "received": traffic.received,
        "lost_trace_rows": outcome.lost_trace_rows,
        **msgspec.structs.asdict(summary(tables)),
        "subscribers": [msgspec.structs.asdict(s) for s in per_subscriber(tables)],
    }


def show_result(
    console: Console, plan: Plan, outcome: Outcome, tables: dict[str, pa.Table]
) -> None:
    """On-time ratio and delay per subscriber."""
    strategy = plan.scenario.broker.strategy
    rows = [
        {"messages": row.expected} | msgspec.structs.asdict(row) for row in per_subscriber(tables)
    ]
    title = f"{plan.scenario.run.name}: {strategy}: what every subscriber got"
    if rows:
        console.print(metrics_table(title, rows, ("subscription", "messages")))
    elif not outcome.lost_trace_rows:
        console.print("Nobody published anything that somebody had subscribed to.")
    console.print(f"Trace rows of run {plan.run} are in {plan.traces}.", soft_wrap=True)
    console.print(f"Next: tidings analyse {plan.traces}", highlight=False, soft_wrap=True)


def so_far(traffic: Traffic, dropped: Mapping[str, int]) -> str:
    """How a run goes: what was said and heard, how much of it in time, and what was given up."""
    said = [f"{traffic.published:,} published", f"{traffic.received:,} received"]
    found = traffic.punctuality
    if (ratio := found.ratio()) is not None:
        said.append(f"{ratio * 100:.1f} % on time")
    said += [
        f"{count:,} {what}" for what, count in (("late", found.late), ("lost", found.lost)) if count
    ]
    drops = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()))
    return ", ".join(said) + (f"; dropped: {drops}" if drops else "")


class RunProgress:
    """A bar with the time left, and what was said and heard so far."""

    def __init__(self, console: Console, clock: Clock, end_at: float) -> None:
        self._clock, self._begin_at, self._end_at = clock, clock(), end_at
        words = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=False))
        columns = (words, BarColumn(bar_width=BAR_WIDTH), TimeRemainingColumn())
        self._bar = Progress(
            *columns,
            console=console,
            transient=True,
            # Brokers' warnings go above the bar, but only where they would be seen anyway.
            redirect_stderr=sys.stderr.isatty() and not console.quiet,
        )
        total = None if end_at == inf else end_at - self._begin_at
        self._task = self._bar.add_task("starting", total=total)

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, traffic: Traffic, dropped: Mapping[str, int]) -> bool:
        """Tells how it goes; false when the time is up."""
        now = self._clock()
        traffic.punctuality.settle(now)
        words = so_far(traffic, dropped)
        self._bar.update(self._task, completed=now - self._begin_at, description=words)
        return now < self._end_at
