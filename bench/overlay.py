"""What do hops between brokers carry, lose and cost, beside Mosquitto's bridges and NATS's routes?

QoS 0, 100-byte payload; brokers are processes in a row on loopback, without emulated delay. All
take the same loads from the same generator, in turn, and in several rounds, of which the median
counts: machines are shared, and one slow second of one of them says nothing.

windowed    as many as get through while at most 4,000 are under way
burst       100,000 as fast as sockets take them; what never arrives is lost
at a rate   the delay from the publisher's socket to the subscriber's: half, 99 % and 99.9 % of all
            messages are quicker; what it cost the busiest broker's processor for each message

The first number of a line is that of hops, the ratio is to the bridge over as many of them. A
chain of NATS servers is made of leaf nodes, as one cluster never forwards twice. Peers come from
the system (Debian: `mosquitto`, `nats-server`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from _brokers import MOSQUITTO_SETTINGS, free_port, program, running
from _processes import cpu_s
from _report import Line, line, run

PAYLOAD_BYTES = 100
WINDOW = 4_000
STRATEGIES = ("d-tree", "dcrd", "qos-path")
LOAD = Path(__file__).parent / "_overlay_load.py"


class Chain(NamedTuple):
    """Brokers in a row that run: a publisher is at the first, a subscriber at the last."""

    language: str
    near: int
    far: int
    processes: list[int]


class Plan(NamedTuple):
    hops: tuple[int, ...] = (1, 2, 3)
    rounds: int = 3
    messages: int = 100_000
    rates_per_s: tuple[int, ...] = (2_000, 5_000, 10_000, 20_000, 40_000)
    seconds: int = 3


QUICK = Plan(hops=(1,), rounds=1, messages=20_000, rates_per_s=(2_000, 20_000), seconds=1)


def measured(quick: bool) -> list[Line]:
    plan = QUICK if quick else Plan()
    kinds = {
        "bridge": bridged,
        "nats": leaves,
        **{name: partial(ours, name) for name in STRATEGIES},
    }
    lines = list[Line]()
    with tempfile.TemporaryDirectory() as name:
        for hops in plan.hops:
            found: dict[str, list[dict[str, dict]]] = {kind: [] for kind in kinds}
            for _ in range(plan.rounds):
                for kind, started in kinds.items():
                    with started(hops + 1, Path(name)) as chain:
                        found[kind].append(loads(chain, plan))
            results = {kind: _medians(rounds) for kind, rounds in found.items()}
            for kind in kinds:
                lines += _lines(f"{hops}, {kind}", results[kind], results["bridge"])
    return lines


def loads(chain: Chain, plan: Plan) -> dict[str, dict]:
    """What came of each load, by its name."""
    found = {"windowed": loaded(chain, plan.messages, window=WINDOW)}
    found[f"burst of {plan.messages:,}"] = loaded(chain, plan.messages)
    for rate_per_s in plan.rates_per_s:
        found[f"{rate_per_s:,}/s"] = loaded(chain, rate_per_s * plan.seconds, rate_per_s)
    return found


def loaded(chain: Chain, messages: int, rate_per_s: int = 0, window: int = 0) -> dict:
    arguments = map(str, (*chain[:3], messages, PAYLOAD_BYTES, rate_per_s, window))
    before = [cpu_s(process) for process in chain.processes]
    command = [sys.executable, str(LOAD), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, timeout=300)
    spent = [cpu_s(process) - was for process, was in zip(chain.processes, before, strict=True)]
    return {**json.loads(done.stdout), "cpu_us": max(spent) / messages * 1e6}


def _medians(rounds: list[dict[str, dict]]) -> dict[str, dict]:
    """Of each figure; but every message that was ever lost counts."""
    return {
        load: {
            figure: (sum if figure == "lost" else median)([each[load][figure] for each in rounds])
            for figure in rounds[0][load]
        }
        for load in rounds[0]
    }


def _lines(name: str, results: dict[str, dict], bridge: dict[str, dict]) -> Iterator[Line]:
    for load, found in results.items():
        figure, unit = ("p99_ms", "ms, 99 %") if load.endswith("/s") else ("per_s", "messages/s")
        value, baseline = found[figure], bridge[load][figure]
        more = {**found, "notes": [_told(found)]}
        yield line(f"{name}, {load}", value, unit, baseline, value / baseline, **more)


def _told(found: dict) -> str:
    return (
        f"{found['per_s']:,.0f}/s, {found['lost']:,} lost; 50 % {found['p50_ms']:.2f}, "
        f"99 % {found['p99_ms']:.2f}, 99.9 % {found['p999_ms']:.2f} ms; "
        f"{found['cpu_us']:.0f} us of the busiest"
    )


# ---- chains of brokers


@contextmanager
def ours(strategy: str, brokers: int, folder: Path) -> Iterator[Chain]:
    """Each linked with the next."""
    names = [f"b{number}" for number in range(brokers)]
    mqtt, links = ({name: free_port() for name in names} for _ in range(2))
    with ExitStack() as stack:
        processes = list[int]()
        for number, name in enumerate(names):
            beside = [*names[max(0, number - 1) : number], *names[number + 1 : number + 2]]
            text = f'name = "{name}"\nmqtt_port = {mqtt[name]}\nlink_port = {links[name]}\n'
            text += f'traces = "{folder / "traces"}"\n'
            for other in beside:
                text += f'[[neighbour]]\nname = "{other}"\nport = {links[other]}\n'
            config = folder / f"{name}.toml"
            config.write_text(text + f'[broker]\nstrategy = "{strategy}"\n')
            command = [sys.executable, "-m", "tidings", "broker", str(config)]
            processes.append(stack.enter_context(running(command, mqtt[name])))
        yield Chain("mqtt", mqtt[names[0]], mqtt[names[-1]], processes)
    shutil.rmtree(folder / "traces", ignore_errors=True)


@contextmanager
def bridged(brokers: int, folder: Path) -> Iterator[Chain]:
    """Each hands everything to the next; the last starts first."""
    ports, processes = [free_port() for _ in range(brokers)], list[int]()
    with ExitStack() as stack:
        for number, port in reversed(list(enumerate(ports))):
            text = f"listener {port} 127.0.0.1\n{MOSQUITTO_SETTINGS}"
            if number + 1 < brokers:
                text += f"connection b{number}\naddress 127.0.0.1:{ports[number + 1]}\n"
                text += "topic # out 0\n"
            config = folder / f"bridge{number}.conf"
            config.write_text(text)
            command = [program("mosquitto"), "-c", str(config)]
            processes.append(stack.enter_context(running(command, port)))
        yield Chain("mqtt", ports[0], ports[-1], processes)


@contextmanager
def leaves(brokers: int, folder: Path) -> Iterator[Chain]:
    """Each is a leaf of the next."""
    ports, hubs = ([free_port() for _ in range(brokers)] for _ in range(2))
    processes = list[int]()
    with ExitStack() as stack:
        for number, port in reversed(list(enumerate(ports))):
            remote = ""
            if number + 1 < brokers:
                remote = f'remotes [{{url: "nats://127.0.0.1:{hubs[number + 1]}"}}]'
            text = f'server_name n{number}\nlisten "127.0.0.1:{port}"\n'
            text += f'leafnodes {{ listen "127.0.0.1:{hubs[number]}"\n{remote} }}\n'
            config = folder / f"nats{number}.conf"
            config.write_text(text)
            command = [program("nats-server"), "-c", str(config)]
            processes.append(stack.enter_context(running(command, port)))
        yield Chain("nats", ports[0], ports[-1], processes)


if __name__ == "__main__":
    run("overlay", __doc__, measured)
