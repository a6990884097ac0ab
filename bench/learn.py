"""How long does `tidings learn` take for a large table of round trips, and in how much memory?

Two shapes are generated, each in a small and a large size that has ten times the rows: a wide one,
of very many links in a few slices, and a long one, of fewer hosts in many slices. One row in fifty
is missing, so that there are outages to be found and compared. All of `tidings learn` is measured
but Spark's start-up: reading, learning, trying predictions, writing the model. It has two cores and
the settings of Spark that the command itself chooses for the table. Java's memory is chosen when it
starts, so each size has a process of its own; memory is that of the JVM, Python and its workers
together.

The growth is the time of the large size over that of the small one: 10 is linear, and less is what
is the same for any size. Processor seconds stand beside the seconds that passed, because others may
use the machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _processes import family_cpu_s, peak_memory
from _report import Line, line, run

from tidings.pipeline.learn.job import learn, write
from tidings.pipeline.learn.measurements import checked_input
from tidings.pipeline.learn.session import learning_session

CORES = 2
MISSING = 0.02  # of the rows
WITHIN_S, WITHIN_BYTES = 180.0, 2e9  # for the large wide table, and as much for the long one
TABLE = "rtt.parquet"
SCHEMA = pa.schema(
    [
        ("slice", pa.int16()),
        ("source", pa.int16()),
        ("target", pa.int16()),
        ("rtt_ms", pa.float32()),
    ]
)


class Size(NamedTuple):
    hosts: int
    slices: int


SHAPES = {"wide": (Size(155, 6), Size(490, 6)), "long": (Size(99, 19), Size(99, 187))}
QUICK_SHAPES = {"wide": (Size(50, 6), Size(155, 6)), "long": (Size(32, 19), Size(32, 187))}


class Cost(NamedTuple):
    rows: int
    seconds: float
    cpu_s: float
    peak_bytes: int
    steps: str


def measured(quick: bool) -> list[Line]:
    lines = []
    for shape, sizes in (QUICK_SHAPES if quick else SHAPES).items():
        small, large = map(learned, sizes)
        lines += [*lines_of(shape, sizes[1], large, quick), growth(shape, small, large)]
    return lines


def learned(size: Size) -> Cost:
    alone = ProcessPoolExecutor(1, get_context("spawn"))
    with tempfile.TemporaryDirectory() as name, alone:
        rows = generate(Path(name) / TABLE, size)
        return alone.submit(learned_here, Path(name), size, rows).result()


def learned_here(folder: Path, size: Size, rows: int) -> Cost:
    """In a process that has not done anything else."""
    given, links = checked_input(folder / TABLE, None, 0.2), size.hosts * (size.hosts - 1)
    spark = learning_session(given, f"local[{CORES}]")
    begun: list[tuple[str, float]] = []
    with peak_memory() as peak:
        started_at, cpu_at = time.perf_counter(), family_cpu_s()
        lesson = learn(spark, given, lambda step, part: begun.append((step, time.perf_counter())))
        write(lesson, folder / "weather.parquet")
        ended_at = time.perf_counter()
        cpu_s = family_cpu_s() - cpu_at
    assert lesson.model.num_rows == links, lesson.model.num_rows
    ends = [at for _, at in begun[1:]] + [ended_at]
    steps = ", ".join(f"{s} {end - at:.1f} s" for (s, at), end in zip(begun, ends, strict=True))
    print(f"{size.hosts} hosts, {size.slices} slices: {steps}", file=sys.stderr)
    return Cost(rows, ended_at - started_at, cpu_s, peak.size_bytes, steps)


def lines_of(shape: str, size: Size, cost: Cost, quick: bool) -> list[Line]:
    links = size.hosts * (size.hosts - 1)
    name = f"{shape}: {links:,} links x {size.slices} slices"
    notes = [
        f"{cost.rows:,} rows, {cost.rows / cost.seconds:,.0f} rows/s",
        f"processor seconds: {cost.cpu_s:.1f}; load of the machine {os.getloadavg()[0]:.1f}",
        cost.steps,
    ]
    more = {"rows_per_s": cost.rows / cost.seconds, "cpu_s": cost.cpu_s, "notes": notes}
    target = None if quick else 1.0
    ratio, memory = WITHIN_S / cost.seconds, WITHIN_BYTES / cost.peak_bytes
    return [
        line(name, cost.seconds, "s", WITHIN_S, ratio, target, **more),
        line("  memory", cost.peak_bytes / 1e6, "MB", WITHIN_BYTES / 1e6, memory, target),
    ]


def growth(shape: str, small: Cost, large: Cost) -> Line:
    grown, cpu = large.seconds / small.seconds, large.cpu_s / small.cpu_s
    more = large.rows / small.rows
    notes = [f"rows {more:.1f} times, processor seconds {cpu:.1f} times"]
    return line(
        f"{shape}: time for ten times the rows", grown, "times", more, grown / more, notes=notes
    )


def generate(path: Path, size: Size) -> int:
    """A table of round trips; how many rows it became."""
    drawn, rows = np.random.default_rng(1), 0
    source, target = np.divmod(np.arange(size.hosts**2), size.hosts)
    source, target = source[source != target], target[source != target]
    usual_ms = drawn.uniform(20.0, 200.0, source.size)
    with pq.ParquetWriter(path, SCHEMA) as file:
        for number in range(size.slices):
            there = drawn.random(source.size) >= MISSING
            rtt_ms = (usual_ms + drawn.gamma(2.0, 10.0, source.size))[there]
            columns = (np.full(rtt_ms.size, number), source[there], target[there], rtt_ms)
            arrays = [
                pa.array(c).cast(f.type, safe=False) for c, f in zip(columns, SCHEMA, strict=True)
            ]
            file.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))
            rows += rtt_ms.size
    return rows


if __name__ == "__main__":
    run("learn", __doc__, measured)
