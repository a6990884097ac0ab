"""A watch that was killed goes on where it was: no window is lost, and none is given out twice.

Each watch here is a process with a Spark of its own.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.brief_spark import BRIEFLY, as_options
from support.children import start
from support.live import eventually
from support.watching import all_rows, as_found, by_hand, write_traces

from tidings.pipeline.watch.job import finished_windows

pytestmark = pytest.mark.timeout(400)


def test_a_killed_watch_goes_on_and_every_window_is_there_once(tmp_path: Path) -> None:
    traces = write_traces(tmp_path / "traces")
    memory = tmp_path / "memory"
    times = ("--window-s", "5", "--watermark-s", "3", "--wait-s", "1", "--batch-rows", "250")
    command = [sys.executable, "-m", "tidings", "watch", str(traces), "--once", "--json", *times]
    command += ["--checkpoint", str(memory), "--master", "local[2]", *as_options(BRIEFLY)]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eventually(lambda: finished_windows(memory) or process.poll() is not None, 200)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = as_found(finished_windows(memory))
    whole = by_hand(all_rows())
    assert 0 < len(before) < len(whole)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    after = as_found(finished_windows(memory))
    assert after == whole
    assert before.items() <= after.items()
    *lines, end = map(json.loads, done.stdout.splitlines())
    assert {line["id"] for line in lines} >= {
        window.id for window in finished_windows(memory) if window.from_s >= 15
    }
    assert end["end"]["late_rows"] == 0
