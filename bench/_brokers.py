"""Brokers as processes on loopback, ours and those of others, for as long as a benchmark runs."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

MOSQUITTO_SETTINGS = (
    "allow_anonymous true\nlog_type none\nset_tcp_nodelay true\n"
    "max_queued_messages 0\nmax_queued_bytes 0\n"
)


def program(name: str) -> str:
    """Where a peer is installed; the benchmark ends if it is not."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    return found or sys.exit(
        f"{name} is not installed; on Debian and Ubuntu: apt-get install {name}"
    )


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """A process that listens at a port; its number."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            sys.exit(f"{process.args} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{process.args} does not listen at port {port}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
