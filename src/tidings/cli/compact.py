"""`tidings compact`: many small segments of live brokers as a few large files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from tidings.cli.options import Json, NoStatus
from tidings.cli.progress import working


def compact(
    traces: Annotated[Path, typer.Argument(help="A folder that live brokers write traces to")],
    settle_s: Annotated[
        float,
        typer.Option(min=0.0, help="Leave segments alone that are younger than so many seconds"),
    ] = 60.0,
    quiet: NoStatus = False,
    json: Json = False,
) -> None:
    """Gather the small trace files of live brokers in one Parquet file per run and table.

    Brokers may go on writing, and a crash loses and doubles nothing: the same command finishes
    what was begun. The newest file of each broker stays as it is.
    """
    from tidings.traces.compaction import compact as gather

    with working(quiet or json, f"Gathering the segments of {traces}"):
        done = gather(traces, settle_s, time.time())
    if json:
        print(msgspec.json.encode({"traces": str(traces), **msgspec.structs.asdict(done)}).decode())
        return
    console = Console(markup=False)
    found = f"Gathered {done.segments:,} segments ({done.rows:,} rows) in {len(done.files)} files"
    console.print(f"{found}; {done.left:,} newer ones stay as they are.", soft_wrap=True)
    if done.cleared:
        earlier = f"{done.cleared:,} that an earlier compaction had gathered"
        console.print(f"Removed {earlier} before it was stopped.", soft_wrap=True)
    console.print(f"Next: tidings analyse {traces}", soft_wrap=True)
