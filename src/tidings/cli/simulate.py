"""`tidings simulate`: one scenario in virtual time."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tidings.core.document import changed, read_toml
from tidings.core.errors import ConfigError
from tidings.core.recorder import Sink
from tidings.core.trace import TABLES, arrow_schema
from tidings.pipeline.headline import Summary, summary
from tidings.sim.scenario import Scenario, load
from tidings.sim.world import Result
from tidings.sim.world import simulate as run_simulation

HEADLINE_TABLES = ("subscribed", "published", "delivered", "dropped", "carried")


def simulate(
    scenario: Annotated[Path, typer.Argument(help="A scenario, such as scenarios/mesh20.toml")],
    strategy: Annotated[str, typer.Option(help="Routing strategy, instead of the file's")] = "",
    seed: Annotated[int | None, typer.Option(help="Seed of all chance, not the file's")] = None,
    change: Annotated[
        list[str], typer.Option("--set", help="Any parameter, as links.loss_ratio=0.01; repeatable")
    ] = [],  # noqa: B006 - typer reads the default, nobody changes it
    traces: Annotated[
        Path | None, typer.Option(help="Write the trace rows to this folder, for `tidings analyse`")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar")] = False,
) -> None:
    """Run one scenario in the simulator and print how it went."""
    chosen = load(scenario, _changes(scenario, strategy, seed, change))
    rows = _Rows(traces, f"{chosen.run.name}-{chosen.digest()}")
    with _progress(quiet or json, chosen) as tell:
        result = run_simulation(chosen, rows.run, rows.sink, tell)
    rows.close()
    figures = summary(rows.tables())
    if json:
        print(msgspec.json.encode(_report(chosen, figures, result)).decode())
    else:
        _show(chosen, figures, result, traces)


def _changes(
    scenario: Path, strategy: str, seed: int | None, settings: list[str]
) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError("--set", "parameter", setting, "name=value")
        try:
            changes[name] = msgspec.toml.decode(f"value = {text}")["value"]
        except msgspec.DecodeError:
            changes[name] = text  # a bare word is a string
    if strategy:
        changes["broker.strategy"] = strategy
    if seed is not None:
        changes["run.seed"] = seed
    changed(read_toml(scenario), changes)  # a missing file is reported before anything else
    return changes


class _Rows:
    """The rows of the run: kept for the headline, and written to a folder if one is named."""

    def __init__(self, folder: Path | None, run: str) -> None:
        self.run = run
        self._folder = folder
        self._kept: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._writers: dict[str, pq.ParquetWriter] = {}

    @property
    def sink(self) -> Sink:
        return self._take

    def _take(self, table: str, batch: pa.RecordBatch) -> None:
        if table in HEADLINE_TABLES:
            self._kept[table].append(batch)
        if self._folder is not None:
            self._writer(self._folder, table, batch.schema).write_batch(batch)

    def _writer(self, folder: Path, table: str, schema: pa.Schema) -> pq.ParquetWriter:
        if table not in self._writers:
            (folder / table).mkdir(parents=True, exist_ok=True)
            hidden = folder / table / f".{self.run}.parquet"
            self._writers[table] = pq.ParquetWriter(hidden, schema, compression="zstd")
        return self._writers[table]

    def close(self) -> None:
        """Make the files appear, whole."""
        for table, writer in self._writers.items():
            writer.close()
            assert self._folder is not None
            hidden = self._folder / table / f".{self.run}.parquet"
            shutil.move(hidden, self._folder / table / f"{self.run}.parquet")

    def tables(self) -> dict[str, pa.Table]:
        return {
            table: pa.Table.from_batches(self._kept[table], arrow_schema(TABLES[table]))
            for table in TABLES
        }


@contextmanager
def _progress(silent: bool, scenario: Scenario):  # type: ignore[no-untyped-def]
    if silent:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(f"{scenario.run.name}, {scenario.run.seconds:g} s", total=1.0)
        tell: Callable[[float], None] = lambda part: bar.update(task, completed=part)  # noqa: E731
        yield tell


def _report(scenario: Scenario, figures: Summary, result: Result) -> dict[str, Any]:
    return {
        "scenario": scenario.run.name,
        "strategy": scenario.broker.strategy,
        "seed": scenario.run.seed,
        **msgspec.structs.asdict(figures),
        **msgspec.structs.asdict(result),
    }


def _show(scenario: Scenario, figures: Summary, result: Result, traces: Path | None) -> None:
    table = Table(title=f"{scenario.run.name}: {scenario.broker.strategy}", show_header=False)
    for name, value in (
        ("publications", f"{figures.publications:,}"),
        ("to subscribers", f"{figures.expected:,}"),
        ("delivery ratio", f"{figures.delivery_ratio:.4%}"),
        ("on-time ratio", f"{figures.on_time_ratio:.4%}"),
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
    if traces:
        console.print(f"Trace rows are in {traces}. Next: tidings analyse {traces}")
    else:
        console.print("Next: the same with --strategy r-tree, or --traces FOLDER to keep the rows")
