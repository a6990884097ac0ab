"""What does a busy host make of healthy links? Copies per message, busy and calm, in one run.

Three brokers on loopback, every pair linked, without emulated delay; a publisher at one of them, a
subscriber at another, so one copy over one link is enough for each message. The same load is given
twice: while the machine has nothing else to do, and while 20 processes compete for it. A host that
is mistaken for a broken link shows as more copies, as detours, and as links that are avoided.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _brokers import free_port, running
from _loads import LOAD, PAYLOAD_BYTES
from _report import Line, line, run

from tidings.traces.audience import with_audience
from tidings.traces.headline import read_tables

BURNERS = 20
RATE_PER_S, SECONDS, BURST = 200, 3, 600
STRATEGIES = ("d-tree", "dcrd")
NAMES = ("a", "b", "c")  # the publisher is at the first, the subscriber at the last
SETTLE_S = 3.0  # every link has been measured
FLUSH_S = 1.5  # longer than a broker keeps rows to itself
Span = tuple[float, float]  # of wall-clock time
Ports = tuple[int, int]  # where the publisher connects, and the subscriber


def measured(quick: bool) -> list[Line]:
    seconds, burst = (SECONDS // 3, BURST // 3) if quick else (SECONDS, BURST)
    return [entry for strategy in STRATEGIES for entry in compared(strategy, seconds, burst)]


def compared(strategy: str, seconds: int, burst: int) -> list[Line]:
    loads = {"steady": (RATE_PER_S * seconds, RATE_PER_S), "burst": (burst, 0)}
    spans: dict[tuple[str, str], Span] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with triangle(strategy, folder) as ports:
            time.sleep(SETTLE_S)
            for phase, burners in (("calm", 0), ("busy", BURNERS)):
                with burning(burners):
                    for load, amount in loads.items():
                        spans[load, phase] = loaded(ports, *amount)
            time.sleep(FLUSH_S)
        found = read_tables(folder / "traces")
    found["published"] = with_audience(found["published"], found["subscribed"])
    tables = {table: rows.to_pylist() for table, rows in found.items()}
    return [told(strategy, load, tables, spans) for load in loads]


def told(strategy: str, load: str, tables: dict, spans: dict[tuple[str, str], Span]) -> Line:
    calm, busy = (copies(tables, spans[load, phase]) for phase in ("calm", "busy"))
    notes = [
        f"{phase}: {found['lost']} of {found['messages']:,} lost, {found['direct']:.1%} went over "
        f"the direct link alone, links turned {found['turns']} times"
        for phase, found in (("calm", calm), ("busy", busy))
    ]
    name, ratio = f"{strategy}, {load}", busy["copies"] / calm["copies"]
    return line(
        name,
        busy["copies"],
        "copies/message",
        calm["copies"],
        ratio,
        notes=notes,
        busy=busy,
        calm=calm,
    )


def copies(tables: dict, span: Span) -> dict:
    """What became of the messages that were published within a span."""
    began_at, ended_at = span
    wanted = (row for row in tables["published"] if row["interested"])
    sent = {row["message"] for row in wanted if began_at <= row["recorded_at"] <= ended_at}
    arrived = {row["message"] for row in tables["delivered"]} & sent
    hops: dict[int, list[str]] = {message: [] for message in sent}
    for row in tables["forwarded"]:
        if row["message"] in sent:
            hops[row["message"]].append(row["neighbour"])
    return {
        "messages": len(sent),
        "lost": len(sent) - len(arrived),
        "copies": sum(map(len, hops.values())) / max(1, len(arrived)),
        "direct": sum(passed == [NAMES[-1]] for passed in hops.values()) / max(1, len(sent)),
        "turns": sum(began_at <= row["recorded_at"] <= ended_at for row in tables["link_changed"]),
    }


def loaded(ports: Ports, messages: int, rate_per_s: int) -> Span:
    """From when to when it took; what belongs to the generator's own beginning is little."""
    began_at = time.time()
    arguments = map(str, ("mqtt", *ports, messages, PAYLOAD_BYTES, rate_per_s, 0))
    done = subprocess.run(
        [sys.executable, str(LOAD), *arguments], check=True, capture_output=True, timeout=300
    )
    json.loads(done.stdout)
    return began_at, time.time()


@contextmanager
def burning(count: int) -> Iterator[None]:
    """So many processes that only compute; they end with this one, whatever happens."""
    loop = f"import os\nwhile os.getppid() == {os.getpid()}: sum(range(100_000))"
    started = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


@contextmanager
def triangle(strategy: str, folder: Path) -> Iterator[Ports]:
    """Three brokers, every pair linked."""
    mqtt, links = ({name: free_port() for name in NAMES} for _ in range(2))
    with ExitStack() as stack:
        for name in NAMES:
            text = f'name = "{name}"\nmqtt_port = {mqtt[name]}\nlink_port = {links[name]}\n'
            text += f'traces = "{folder / "traces"}"\n'
            for other in NAMES:
                if other != name:
                    text += f'[[neighbour]]\nname = "{other}"\nport = {links[other]}\n'
            config = folder / f"{name}.toml"
            config.write_text(text + f'[broker]\nstrategy = "{strategy}"\ntrace = "hops"\n')
            command = [sys.executable, "-m", "tidings", "broker", str(config)]
            stack.enter_context(running(command, mqtt[name]))
        yield mqtt[NAMES[0]], mqtt[NAMES[-1]]


if __name__ == "__main__":
    run("busy_host", __doc__, measured)
