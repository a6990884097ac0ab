"""However a sweep ends early, the points that had finished stay, and the next one goes on there.

Each sweep here is a process with a Spark of its own, so these tests leave the shared session alone.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.sweeps import TINY_SCENARIO, a_spec, point_files, start_sweep

from tidings.traces import headline
from tidings.traces.points import finished_points

pytestmark = pytest.mark.timeout(600)

# About half a second of work for each point, so that a signal finds the sweep in the middle.
SLOWER = TINY_SCENARIO.replace("seconds = 3", "seconds = 200")
POINTS = 16
MANY = f"run.seed = {{ from = 1, count = {POINTS} }}"


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def cut_short(
    spec: Path, out: Path, number: signal.Signals, when: Callable[[int], bool]
) -> tuple[str, str, int]:
    """What a sweep prints, and how it ends, that gets a signal as soon as `when(its pid)`."""
    process = start_sweep(spec, out, start_new_session=True)
    wait_for(lambda: when(process.pid), process)
    os.killpg(process.pid, number)
    said, complaints = process.communicate(timeout=180)  # its pipes close when the JVM has ended
    return said, complaints, process.returncode


def test_points_that_finished_survive_a_kill_an_interrupt_and_a_termination(tmp_path: Path) -> None:
    spec, out = a_spec(tmp_path, MANY, SLOWER), tmp_path / "out"
    cut_short(spec, out, signal.SIGKILL, lambda _: len(point_files(out)) >= 1)
    survived = point_files(out)
    for number in (signal.SIGINT, signal.SIGTERM):  # the latter as `timeout` sends it, to all
        more = len(survived) + 2
        times = {path: path.stat().st_mtime_ns for path in survived}
        said, complaints, code = cut_short(
            spec, out, number, lambda _, more=more: len(point_files(out)) >= more
        )
        assert (code, complaints) == (130, "")
        kept = point_files(out)
        assert set(survived) < set(kept)
        assert all(path.stat().st_mtime_ns == times[path] for path in survived)
        assert len(kept) < POINTS
        assert f"{len(kept)} of {POINTS} points are in {out}" in said
        assert f"To run the other {POINTS - len(kept)}: tidings sweep {spec} --out {out}" in said
        survived = kept
    points = {row["point"]: row["publications"] for row in finished_points(out).to_pylist()}
    rows = headline.read_tables(out)["published"].select(["run", "message"]).to_pylist()
    found = [(row["run"], row["message"]) for row in rows if row["run"] in points]
    assert len(found) == len(set(found)) == sum(points.values())


def test_a_termination_while_spark_starts_ends_a_sweep_as_well(tmp_path: Path) -> None:
    def starts_java(pid: int) -> bool:
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    spec, out = a_spec(tmp_path, MANY, SLOWER), tmp_path / "out"
    said, complaints, code = cut_short(spec, out, signal.SIGTERM, starts_java)
    assert (code, complaints) == (130, "")
    assert f"0 of {POINTS} points are in {out}" in said
