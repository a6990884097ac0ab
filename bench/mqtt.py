"""How many messages a second does one live broker deliver, beside Mosquitto?

QoS 0, 100-byte payload, MQTT 3.1.1, fan-out 1, 10 and 100. Every message goes through
`Broker.publish` and into the trace at its default level, written to disk. Both brokers run as
processes on loopback, take the same load from the same generator in turn, and the best of a few
rounds counts for each: machines are shared. Mosquitto comes from the system (Debian: `mosquitto`).
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _report import Line, line, run

FAN_OUTS = (1, 10, 100)
DELIVERIES = 2_000_000
WINDOW = 4_000  # messages that a publisher may be ahead of the slowest subscriber
PAYLOAD_BYTES = 100
TARGET_RATIO = 2.0
LOAD = Path(__file__).parent / "_mqtt_load.py"


def measured(quick: bool) -> list[Line]:
    if not (mosquitto := _mosquitto()):
        sys.exit("mosquitto is not installed; on Debian and Ubuntu: apt-get install mosquitto")
    deliveries, rounds = (DELIVERIES // 10, 1) if quick else (DELIVERIES, 3)
    with tempfile.TemporaryDirectory() as folder:
        return [
            compared(fan_out, deliveries, rounds, mosquitto, Path(folder)) for fan_out in FAN_OUTS
        ]


def compared(fan_out: int, deliveries: int, rounds: int, mosquitto: str, folder: Path) -> Line:
    ours, theirs = [], []
    for _ in range(rounds):
        with tidings_broker(folder) as port:
            ours.append(loaded(port, fan_out, deliveries // fan_out))
        with mosquitto_broker(mosquitto, folder) as port:
            theirs.append(loaded(port, fan_out, deliveries // fan_out))
    best, peer = (max(results, key=lambda result: result["per_s"]) for results in (ours, theirs))
    lost = sum(result["lost"] for result in ours)
    ratio = best["per_s"] / peer["per_s"]
    notes = [f"{lost:,} messages lost by ours"] if lost else []
    return line(
        f"fan-out {fan_out}",
        best["per_s"],
        "messages/s",
        peer["per_s"],
        ratio,
        TARGET_RATIO,
        notes=notes,
    )


def loaded(port: int, fan_out: int, messages: int) -> dict:
    arguments = map(str, (port, fan_out, messages, PAYLOAD_BYTES, WINDOW))
    done = subprocess.run(
        [sys.executable, str(LOAD), *arguments], check=True, capture_output=True, timeout=300
    )
    return json.loads(done.stdout)


@contextmanager
def tidings_broker(folder: Path) -> Iterator[int]:
    port, config = _free_port(), folder / "broker.toml"
    config.write_text(f'name = "bench"\nmqtt_port = {port}\ntraces = "{folder / "traces"}"\n')
    with _process([sys.executable, "-m", "tidings", "broker", str(config)], port):
        yield port
    shutil.rmtree(folder / "traces", ignore_errors=True)


@contextmanager
def mosquitto_broker(mosquitto: str, folder: Path) -> Iterator[int]:
    port, config = _free_port(), folder / "mosquitto.conf"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_type none\nset_tcp_nodelay true\n"
        "max_queued_messages 0\nmax_queued_bytes 0\n"
    )
    with _process([mosquitto, "-c", str(config)], port):
        yield port


@contextmanager
def _process(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _mosquitto() -> str | None:
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


if __name__ == "__main__":
    run("mqtt", __doc__, measured)
