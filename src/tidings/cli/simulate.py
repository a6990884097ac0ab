"""`tidings simulate`: one scenario in virtual time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tidings.cli.choice import Changes, ScenarioName, choose
from tidings.cli.options import Json, NoProgressBar
from tidings.core.trace import TABLES
from tidings.files.folders import writable_folder
from tidings.sim.result import Result
from tidings.sim.scenario import Scenario
from tidings.sim.setup import Setup
from tidings.sim.world import simulate as run_simulation
from tidings.traces.drafts import Drafts
from tidings.traces.headline import HEADLINE_TABLES, Summary, summary
from tidings.traces.plain_parquet.empty_tables import write_empty_tables
from tidings.traces.schemas import arrow_schema


def simulate(
    scenario: ScenarioName = "mesh20",
    strategy: Annotated[str, typer.Option(help="Routing strategy, instead of the file's")] = "",
    seed: Annotated[int | None, typer.Option(help="Seed of all chance, not the file's")] = None,
    change: Changes = None,
    traces: Annotated[
        Path | None, typer.Option(help="Write the trace rows to this folder, for `tidings analyse`")
    ] = None,
    weather: Annotated[
        Path | None, typer.Option(help="Links behave as in this model of `tidings learn`")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="What happened in these traces happens on the links again")
    ] = None,
    json: Json = False,
    quiet: NoProgressBar = False,
) -> None:
    """Run one scenario in the simulator and print how it went."""
    setup = choose(scenario, change, strategy, seed, weather=weather, replay=replay)
    chosen = setup.scenario
    run = f"{chosen.run.name}-{setup.digest}"
    rows = _Rows(traces and writable_folder(traces, "--traces"), run)
    with rows.kept_at_the_end(), _progress(quiet or json, chosen) as tell:
        result = run_simulation(setup, run, rows.take, tell)
    figures = summary(rows.tables())
    if json:
        print(msgspec.json.encode(_report(setup, figures, result)).decode())
    else:
        _show(setup, figures, result, traces)


class _Rows:
    """The rows of the run: held for the headline, and written to a folder if one was named."""

    def __init__(self, folder: Path | None, run: str) -> None:
        self._folder, self._drafts = folder, Drafts(folder, run) if folder else None
        self._held: dict[str, list[pa.RecordBatch]] = defaultdict(list)

    def take(self, table: str, batch: pa.RecordBatch) -> None:
        if table in HEADLINE_TABLES:
            self._held[table].append(batch)
        if self._drafts:
            self._drafts.sink(table, batch)

    @contextmanager
    def kept_at_the_end(self) -> Iterator[None]:
        """Files appear when the run is over; one that is cut short leaves none."""
        if self._folder is None or self._drafts is None:
            yield
            return
        try:
            yield
            self._drafts.keep()
            write_empty_tables(self._folder)
        finally:
            self._drafts.discard()

    def tables(self) -> dict[str, pa.Table]:
        return {
            table: pa.Table.from_batches(self._held[table], arrow_schema(TABLES[table]))
            for table in TABLES
        }


@contextmanager
def _progress(silent: bool, scenario: Scenario) -> Iterator[Callable[[float], None] | None]:
    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"{scenario.run.name}, {scenario.run.seconds:g} s", total=1.0)

        def tell(part: float) -> None:
            bar.update(task, completed=part)

        yield tell


def _report(setup: Setup, figures: Summary, result: Result) -> dict[str, Any]:
    scenario = setup.scenario
    return {
        "scenario": scenario.run.name,
        "strategy": scenario.broker.strategy,
        "scheduling": scenario.broker.scheduling,
        "seed": scenario.run.seed,
        **({"links": origin} if (origin := _origin_of_links(setup)) else {}),
        **msgspec.structs.asdict(figures),
        **msgspec.structs.asdict(result),
    }


def _origin_of_links(setup: Setup) -> str:
    """Where the links' behaviour comes from, if not from the scenario itself."""
    links = setup.scenario.links
    source = links.model or links.replay
    return f"Links follow {source}: {setup.courses.description}." if source else ""


def _show(setup: Setup, figures: Summary, result: Result, traces: Path | None) -> None:
    scenario = setup.scenario
    table = Table(title=f"{scenario.run.name}: {scenario.broker.strategy}", show_header=False)
    table.add_column()
    table.add_column(no_wrap=True)  # a narrow screen folds the names, and cuts no number
    for name, value in (
        ("publications", f"{figures.publications:,}"),
        ("to subscribers", f"{figures.expected:,}"),
        ("delivery ratio", f"{figures.delivery_ratio:.4%}"),
        ("on-time ratio", f"{figures.on_time_ratio:.4%}"),
        ("earnings", f"{figures.earnings:,.10g}"),
        ("messages between brokers", f"{figures.message_number:,}"),
        ("packets per subscriber", f"{figures.packets_per_subscriber:.3f}"),
        ("delay, median", f"{figures.delay_p50_s * 1000:.1f} ms"),
        ("delay, 95 %", f"{figures.delay_p95_s * 1000:.1f} ms"),
        ("delay, 99 %", f"{figures.delay_p99_s * 1000:.1f} ms"),
        *((f"dropped: {reason}", f"{count:,}") for reason, count in figures.dropped.items()),
        ("in flight at the end", f"{figures.in_flight:,}"),
        ("digest", result.digest[:16]),
    ):
        table.add_row(name, value)
    console = Console()
    console.print(table)
    if origin := _origin_of_links(setup):
        console.print(origin, soft_wrap=True)
    for warning in result.warnings:
        console.print(warning, style="yellow")
    if traces:
        console.print(f"Trace rows are in {traces}. Next: tidings analyse {traces}", soft_wrap=True)
    else:
        console.print(
            "Next: the same with --strategy r-tree, or --traces FOLDER to keep the rows",
            soft_wrap=True,
        )
