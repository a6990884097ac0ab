"""Somebody who ends a command of Spark's in the middle of a job is not shown Spark's thoughts."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.brief_spark import BRIEFLY, as_options
from support.children import start
from support.traces import BY_HAND, tables_of, write_tables

from tidings.cli.progress import ended_in_good_order

WITHIN_S = 200.0
HOSTS, SLICES = 20, 200


def started(*arguments: object) -> subprocess.Popen[Any]:
    command = [sys.executable, "-m", "tidings", *arguments, "--master", "local[1]"]
    return start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until_there(folder: Path, pattern: str, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not any(folder.rglob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_ends_a_watch_after_the_batch_in_hand(tmp_path: Path) -> None:
    traces = write_tables(tmp_path / "traces", tables_of({"r": BY_HAND}), "r-b1-000000")
    process = started("watch", traces, *as_options(BRIEFLY))
    until_there(traces / ".watch" / "spark", "offsets/0", process)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, complaints) == (0, "")
    assert "Next: tidings analyse" in said
    assert list((traces / ".watch" / "spark").rglob("commits/0"))  # it was not cut short


def test_a_time_out_ends_a_lesson_in_silence(tmp_path: Path) -> None:
    drawn = np.random.default_rng(3)
    cells = np.indices((SLICES, HOSTS, HOSTS)).reshape(3, -1)
    slices, source, target = cells[:, cells[1] != cells[2]]
    rtt_ms = 40.0 + drawn.gamma(2.0, 10.0, len(slices))
    table = {"slice": slices, "source": source, "target": target, "rtt_ms": rtt_ms}
    pq.write_table(pa.table(table), tmp_path / "rtt.parquet")
    place = tmp_path / "spark"
    place.mkdir()
    out = ("--out", tmp_path / "model.parquet", "--conf", f"spark.local.dir={place}")
    process = started("learn", tmp_path / "rtt.parquet", *out)
    until_there(place, "shuffle_*", process)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=WITHIN_S) == ("", "")
    assert process.returncode == 130
    assert not (tmp_path / "model.parquet").exists()


def test_the_first_interrupt_waits_and_the_second_does_not() -> None:
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ended_in_good_order() as ending:
            assert not ending.is_set()
            signal.raise_signal(signal.SIGTERM)
            assert ending.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with ended_in_good_order():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)
