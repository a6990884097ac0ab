"""How many messages a second does one live broker deliver, beside Mosquitto?

QoS 0, 100-byte payload, MQTT 3.1.1, fan-out 1, 10 and 100. Every message goes through
`Broker.publish` and into the trace at its default level, written to disk. Both brokers run as
processes on loopback, take the same load from the same generator in turn, and the best of a few
rounds counts for each: machines are shared. Mosquitto comes from the system (Debian: `mosquitto`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _brokers import MOSQUITTO_SETTINGS, free_port, program, running
from _report import Line, line, run

FAN_OUTS = (1, 10, 100)
DELIVERIES = 2_000_000
WINDOW = 4_000  # messages that a publisher may be ahead of the slowest subscriber
PAYLOAD_BYTES = 100
TARGET_RATIO = 2.0
LOAD = Path(__file__).parent / "_mqtt_load.py"


def measured(quick: bool) -> list[Line]:
    deliveries, rounds = (DELIVERIES // 10, 1) if quick else (DELIVERIES, 3)
    with tempfile.TemporaryDirectory() as folder:
        return [compared(fan_out, deliveries, rounds, Path(folder)) for fan_out in FAN_OUTS]


def compared(fan_out: int, deliveries: int, rounds: int, folder: Path) -> Line:
    ours, theirs = [], []
    for _ in range(rounds):
        with tidings_broker(folder) as port:
            ours.append(loaded(port, fan_out, deliveries // fan_out))
        with mosquitto_broker(folder) as port:
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
    port, config = free_port(), folder / "broker.toml"
    config.write_text(f'name = "bench"\nmqtt_port = {port}\ntraces = "{folder / "traces"}"\n')
    with running([sys.executable, "-m", "tidings", "broker", str(config)], port):
        yield port
    shutil.rmtree(folder / "traces", ignore_errors=True)


@contextmanager
def mosquitto_broker(folder: Path) -> Iterator[int]:
    port, config = free_port(), folder / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\n{MOSQUITTO_SETTINGS}")
    with running([program("mosquitto"), "-c", str(config)], port):
        yield port


if __name__ == "__main__":
    run("mqtt", __doc__, measured)
