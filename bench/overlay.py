"""What does a hop between brokers lose and cost, beside a Mosquitto bridge?

QoS 0, 100-byte payload, MQTT 3.1.1; brokers are processes on loopback without emulated delay. A
burst offers 100,000 messages as fast as sockets take them; the sustained load offers them at a
steady rate. Every message that was offered and not delivered is counted as lost. Both overlays take
the same load from the same generator in turn.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _report import Line, line, run
from mqtt import PAYLOAD_BYTES, _free_port, _mosquitto, _process

MESSAGES = 100_000
RATE_PER_S = 10_000
SECONDS = 10
LOAD = Path(__file__).parent / "_overlay_load.py"
Ports = tuple[int, int]  # where the publisher connects, and the subscriber


def measured(quick: bool) -> list[Line]:
    if not (mosquitto := _mosquitto()):
        sys.exit("mosquitto is not installed; on Debian and Ubuntu: apt-get install mosquitto")
    messages, seconds = (MESSAGES // 5, SECONDS // 5) if quick else (MESSAGES, SECONDS)
    with tempfile.TemporaryDirectory() as name:
        folder, lines = Path(name), list[Line]()
        with bridged(mosquitto, folder) as ports:
            burst, steady = loads(ports, messages, seconds)
        for strategy, brokers in (("d-tree", 2), ("dcrd", 2), ("d-tree", 3)):
            with chained(strategy, brokers, folder) as ports:
                ours = loads(ports, messages, seconds)
            hops = f"{brokers - 1} {'hop' if brokers == 2 else 'hops'}"
            kinds = (f"burst of {messages:,}", f"{RATE_PER_S:,}/s for {seconds} s")
            for kind, found, peer in zip(kinds, ours, (burst, steady), strict=True):
                lines.append(_line(f"{strategy}, {hops}, {kind}", found, peer))
        return lines


def _line(name: str, found: dict, peer: dict) -> Line:
    notes = [
        f"lost {found['lost']:,} (Mosquitto {peer['lost']:,}); delay median {found['p50_ms']:.1f}, "
        f"99 % {found['p99_ms']:.1f} ms (Mosquitto {peer['p50_ms']:.1f}, {peer['p99_ms']:.1f})"
    ]
    ratio = found["per_s"] / peer["per_s"]
    return line(name, found["per_s"], "messages/s", peer["per_s"], ratio, notes=notes, **found)


def loads(ports: Ports, messages: int, seconds: int) -> tuple[dict, dict]:
    """The burst, and the sustained load."""
    return loaded(ports, messages, 0), loaded(ports, RATE_PER_S * seconds, RATE_PER_S)


def loaded(ports: Ports, messages: int, rate_per_s: int) -> dict:
    arguments = map(str, (*ports, messages, PAYLOAD_BYTES, rate_per_s))
    done = subprocess.run(
        [sys.executable, str(LOAD), *arguments], check=True, capture_output=True, timeout=300
    )
    return json.loads(done.stdout)


@contextmanager
def chained(strategy: str, brokers: int, folder: Path) -> Iterator[Ports]:
    """Brokers in a row, each linked with the next."""
    names = [f"b{number}" for number in range(brokers)]
    mqtt, links = ({name: _free_port() for name in names} for _ in range(2))
    with ExitStack() as stack:
        for number, name in enumerate(names):
            beside = [*names[max(0, number - 1) : number], *names[number + 1 : number + 2]]
            text = f'name = "{name}"\nmqtt_port = {mqtt[name]}\nlink_port = {links[name]}\n'
            text += f'traces = "{folder / "traces"}"\n'
            for other in beside:
                text += f'[[neighbour]]\nname = "{other}"\nport = {links[other]}\n'
            config = folder / f"{name}.toml"
            config.write_text(text + f'[broker]\nstrategy = "{strategy}"\n')
            command = [sys.executable, "-m", "tidings", "broker", str(config)]
            stack.enter_context(_process(command, mqtt[name]))
        yield mqtt[names[0]], mqtt[names[-1]]
    shutil.rmtree(folder / "traces", ignore_errors=True)


@contextmanager
def bridged(mosquitto: str, folder: Path) -> Iterator[Ports]:
    """Two brokers, the first of which hands everything to the second."""
    near, far = _free_port(), _free_port()
    common = "allow_anonymous true\nlog_type none\nset_tcp_nodelay true\n"
    common += "max_queued_messages 0\nmax_queued_bytes 0\n"
    (folder / "far.conf").write_text(f"listener {far} 127.0.0.1\n{common}")
    bridge = f"connection b\naddress 127.0.0.1:{far}\ntopic # out 0\n"
    (folder / "near.conf").write_text(f"listener {near} 127.0.0.1\n{common}{bridge}")
    with (
        _process([mosquitto, "-c", str(folder / "far.conf")], far),
        _process([mosquitto, "-c", str(folder / "near.conf")], near),
    ):
        yield near, far


if __name__ == "__main__":
    run("overlay", __doc__, measured)
